import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Contents, writeExecutable } from "./executable.ts";
import { paths } from "./paths.ts";
import { run } from "./run.ts";

const launcher = () => readFileSync(join(paths.root, "scripts/build/launcher.cjs"), "utf8");
/** Replaces the cache: the same launcher without one, which writes one after a run. */
const RECORDING = `
const cachedData = undefined;
process.once("exit", () => require("node:fs").writeFileSync(process.env.VODBOX_CODE_CACHE, script.createCachedData()));
`;

/** The bundle in the form that the launcher needs: one function. */
function wrapped(bundle: string): string {
  const source = readFileSync(bundle, "utf8");
  const path = join(paths.work, "wrapped.cjs");
  writeFileSync(path, `(function (require, module, exports) {${source}\n})`);
  return path;
}

/**
 * Runs a first executable through a start and a stop of the server, and keeps the code that V8 compiled. Only possible
 * with the processor's own Node; without `isWarm` the cache is empty, and V8 ignores it.
 */
export async function warmAssets(
  contents: Contents,
  isWarm: boolean,
): Promise<{ main: string; assets: Record<string, string> }> {
  const code = { "vodbox.cjs": wrapped(contents.main) };
  const main = join(paths.work, "launcher.cjs");
  const cache = join(paths.work, "vodbox.cache");
  writeFileSync(cache, "");
  if (isWarm) {
    const recorder = join(paths.work, "recorder.cjs");
    writeFileSync(recorder, launcher().replace(/\/\* WARM \*\/[\s\S]*\/\* END \*\//, RECORDING));
    const result = join(paths.work, "recorder");
    await writeExecutable({ ...contents, main: recorder, assets: { ...contents.assets, ...code }, result });
    const data = join(paths.work, "warm-data");
    rmSync(data, { recursive: true, force: true });
    mkdirSync(data);
    await run(result, ["serve", "--data", data, "--port", "0", "--workers", "0", "--log-level", "silent"], {
      env: { VODBOX_CACHE_DIR: join(paths.work, "cache"), VODBOX_CODE_CACHE: cache },
      onLine: (line, stop) => {
        const base = /^vodbox ready on (\S+)/.exec(line)?.[1];
        if (base) void visit(base).finally(stop);
      },
    });
    rmSync(data, { recursive: true, force: true });
    rmSync(result);
  }
  writeFileSync(main, launcher());
  return { main, assets: { ...contents.assets, ...code, "vodbox.cache": cache } };
}

/** Whether the last executable has compiled code: without it a start takes longer than that of a release. */
export const isLastBuildWarm = (): boolean =>
  (statSync(join(paths.work, "vodbox.cache"), { throwIfNoEntry: false })?.size ?? 0) > 0;

/** The requests of a server's first seconds, so that their code is cached too. */
async function visit(base: string): Promise<void> {
  for (const path of ["/healthz", "/readyz", "/api/v1/assets", "/api/v1/nothing", "/watch/vid_nothing"])
    await (await fetch(base + path)).text();
}
