import { parseArgs } from "node:util";
import { writeAssets } from "./build/assets.ts";
import type { Arch } from "./build/base.ts";
import { buildExecutable } from "./build/build-executable.ts";
import type { BuildKind } from "./build/kind.ts";
import { paths } from "./build/paths.ts";
import { planSteps, step } from "./build/report.ts";
import { chooseTools, expectedSeconds, type Tools } from "./build/tools.ts";
import { completeInBackground } from "./ffmpeg/background.ts";
import type { Wish } from "./ffmpeg/build.ts";

const usage = `usage: npm run build -- [--assets-only] [--arch x64|arm64] [--complete] [--av1] [--release] [--no-background]
  --assets-only    only build/assets, without ffmpeg
  --arch ARCH      for another processor
  --av1            with an encoder of AV1, which is compiled if no build in the cache has it
  --complete       with the ffmpeg of a release, which is compiled completely
  --release        as it is released: that ffmpeg, everything compressed densely, and a faster start
  --for-tests      with the faster start only
  --no-background  do not compile the complete ffmpeg afterwards`;

async function main(): Promise<void> {
  const flag = { type: "boolean" } as const;
  const { values } = parseArgs({
    options: {
      "assets-only": flag,
      av1: flag,
      complete: flag,
      release: flag,
      "for-tests": flag,
      "no-background": flag,
      arch: { type: "string" },
    },
  });
  const arch = values.arch ?? process.arch;
  if (arch !== "x64" && arch !== "arm64") throw new Error(`There is no vodbox for ${arch}.\n${usage}`);
  const kind: BuildKind = values.release ? "release" : values["for-tests"] ? "tests" : "development";
  const assets = () => step("assets", () => writeAssets(kind));
  if (values["assets-only"]) return assets();
  const wish: Wish = values.release || values.complete ? "complete" : values.av1 ? "linked-av1" : "linked";
  const tools = await prepared(arch, { wish, kind, assets });
  await buildExecutable(arch, arch === process.arch ? paths.result : `${paths.result}-${arch}`, { tools, kind });
  if (arch === process.arch && !values["no-background"]) await completeInBackground(tools);
}

type Plan = { wish: Wish; kind: BuildKind; assets: () => Promise<void> };

/** Assets and ffmpeg at the same time: one mostly bundles, the other mostly downloads and compiles. */
async function prepared(arch: Arch, { wish, kind, assets }: Plan): Promise<Tools> {
  const isWarm = kind !== "development" && arch === process.arch;
  planSteps({
    ffmpeg: expectedSeconds(arch, wish),
    assets: 4,
    bundle: 1,
    sandbox: 1,
    compress: kind === "release" ? 20 : 2,
    ...(isWarm && { "warm code": 7 }),
    executable: 6,
  });
  const results = await Promise.allSettled([step("ffmpeg", () => chooseTools(arch, wish)), assets()]);
  for (const result of results) if (result.status === "rejected") throw result.reason;
  return (results[0] as PromiseFulfilledResult<Tools>).value;
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
