import { parseArgs } from "node:util";
import { writeAssets } from "./build/assets.ts";
import { buildExecutable } from "./build/build-executable.ts";
import { paths } from "./build/paths.ts";
import { step } from "./build/report.ts";

const usage = "usage: npm run build -- [--assets-only] [--arch x64|arm64]";

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { "assets-only": { type: "boolean" }, arch: { type: "string" } } });
  const arch = values.arch ?? process.arch;
  if (arch !== "x64" && arch !== "arm64") throw new Error(`There is no vodbox for ${arch}. ${usage}`);
  await step("assets", writeAssets);
  if (values["assets-only"]) return;
  await buildExecutable(arch, arch === process.arch ? paths.result : `${paths.result}-${arch}`);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
