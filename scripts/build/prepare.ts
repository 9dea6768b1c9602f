import { existsSync, globSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Arch } from "./base.ts";
import { paths } from "./paths.ts";
import { step } from "./report.ts";

/** What is copied or bundled from the sources. A server that runs from its sources imports everything else. */
const SOURCES = [
  ...["storage/db/migrations", "storage/db/migrations/*", "package-lock.json"],
  ...["src/web/client/**", "src/web/console/**", "src/clients/typescript/**"],
];

/**
 * Writes the parts of `build/` that a server needs when it runs from its sources: migrations and browser code whenever
 * they have changed, and ffmpeg once. Takes milliseconds when nothing is missing, so it does not load the bundler then.
 */
export async function prepareBuild(): Promise<void> {
  if (isStale()) {
    const { writeAssets } = await import("./assets.ts");
    await step("build/assets: migrations and browser code", () => writeAssets("development"));
  }
  if (!existsSync(join(paths.assets, "bin/ffmpeg"))) {
    await step("build/assets/bin: ffmpeg", writePrograms);
  }
}

async function writePrograms(): Promise<void> {
  const [{ chooseTools }, { sandboxLauncher }, { whisperHelpers }, { share }] = await Promise.all([
    import("./tools.ts"),
    import("./sandbox.ts"),
    import("./whisper.ts"),
    import("./share.ts"),
  ]);
  const arch = process.arch as Arch;
  const tools = await chooseTools(arch);
  // ffmpeg last: it marks a complete directory.
  share({
    ...(await sandboxLauncher(arch)),
    ...(await whisperHelpers(arch)),
    ffprobe: tools.ffprobe,
    ffmpeg: tools.ffmpeg,
  });
  const { completeInBackground } = await import("../ffmpeg/background.ts");
  await completeInBackground(tools);
}

function isStale(): boolean {
  // Written last.
  const info = statSync(join(paths.assets, "console/files.json"), { throwIfNoEntry: false });
  if (!info) return true;
  return globSync(SOURCES, { cwd: paths.root }).some((path) => statSync(join(paths.root, path)).mtimeMs > info.mtimeMs);
}
