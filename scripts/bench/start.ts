import { join } from "node:path";
import { writeExecutable } from "../build/executable.ts";
import { paths } from "../build/paths.ts";
import { start, startVodbox, workFolder } from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const ROUNDS = 15;

/** From exec to the first 200, warm: data directory created, helpers extracted, files in the page cache. */
export async function benchStart(rounds = ROUNDS): Promise<Result[]> {
  const work = workFolder();
  try {
    const hello = join(work.path, "hello");
    await writeExecutable({
      arch: process.arch as "x64",
      main: join(paths.root, "scripts/bench/references/hello.cjs"),
      assets: {},
      result: hello,
    });
    const data = join(work.path, "data");
    await (await startVodbox(data)).stop();
    const firstAnswer = async (begin: () => ReturnType<typeof start>, path: string) => {
      const from = performance.now();
      const running = await begin();
      const response = await fetch(`${running.base}${path}`);
      const took = performance.now() - from;
      await response.text();
      if (response.status !== 200) throw new Error(`${path} answered ${response.status}`);
      await running.stop();
      return took;
    };
    const samples = await alternately(rounds, {
      ours: () => firstAnswer(() => startVodbox(data), "/healthz"),
      theirs: () => firstAnswer(() => start(hello, []), "/"),
    });
    return [
      compare("start to first 200, warm", samples, {
        reference: "bare hello server in the same base",
        unit: "ms",
        bar: { atMost: 2 },
      }),
    ];
  } finally {
    work.remove();
  }
}
