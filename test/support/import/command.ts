import type { StandInProvider } from "./providers.ts";
import { type Library, type StandIn, startStandIn } from "./stand-in.ts";

/** How `vodbox import` is called for a stand-in that is started here, by default with the library of the tests. */
export async function importCommand(
  { name, routes, isAllowed, env, args }: StandInProvider,
  library?: Library,
): Promise<{ standIn: StandIn; args: string[]; env: Record<string, string> }> {
  const standIn = await startStandIn(routes, isAllowed, library);
  return {
    standIn,
    args: ["import", name, ...args],
    env: { ...env(standIn), VODBOX_IMPORT_API_URL: standIn.api },
  };
}
