import type { ViewerExport } from "#build/client/methods.ts";
import type { Result } from "#clients/typescript/types.ts";
import { UserError } from "#lib/base";
import { line, printJson } from "../print.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";

type Options = { tenant: string; yes?: boolean };

async function pathOf({ admin, args, options }: CommandContext<Options>): Promise<string> {
  const id = encodeURIComponent(args[0] ?? "");
  return `/api/v1/analytics/viewers/${id}?tenant_id=${await tenantId(admin, options.tenant)}`;
}

/** Prints what is stored of a viewer, as JSON in any case: it is for a file. */
export const exportViewer = async (context: CommandContext<Options>): Promise<void> =>
  printJson(await context.admin.call<ViewerExport>("GET", await pathOf(context)));

export async function erase(context: CommandContext<Options>): Promise<void> {
  if (!context.options.yes)
    throw new UserError("What is stored of the viewer is erased, for good; confirm it with --yes.", 2);
  const erased = await context.admin.call<Result<"eraseViewer">>("DELETE", await pathOf(context));
  if (context.json) return printJson(erased);
  const { session_count: sessions, event_count: events } = erased;
  line(
    `Erased ${sessions} ${sessions === 1 ? "session" : "sessions"} with ${events} ${events === 1 ? "event" : "events"}.`,
  );
}
