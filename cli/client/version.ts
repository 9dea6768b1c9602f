import { programVersion } from "#lib/executable";
import { line, printJson } from "../print.ts";

/** Takes the place of cli/version.ts in the npm package of the commands: it contains neither libSQL nor ffmpeg. */
export async function printVersion({ json }: { json: boolean }): Promise<void> {
  const versions = { vodbox: programVersion(), node: process.version.slice(1) };
  if (json) return printJson(versions);
  for (const [name, version] of Object.entries(versions)) line(`${name.padEnd(6)}  ${version}`);
}
