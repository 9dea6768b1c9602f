import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { tenantApi, uploadFile } from "#cli/api.ts";
import { chooseTools } from "../build/tools.ts";
import { startVodbox, tenantWithKey, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";

const run = promisify(execFile);
const JOBS = 6;
const SECONDS = 10;
const ROUNDS = 3;

/** The effect of a second worker on this machine: jobs of 10 s of 1080p30, until the last one plays. */
export async function benchWorkers(): Promise<Result[]> {
  const work = workFolder();
  try {
    const { ffmpeg } = await chooseTools(process.arch as "x64");
    const source = join(work.path, "source.mp4");
    const lavfi = (text: string) => ["-f", "lavfi", "-i", text];
    await run(ffmpeg, [
      ...["-nostdin", "-loglevel", "error", "-y"],
      ...lavfi(`testsrc2=size=1920x1080:rate=30:duration=${SECONDS}`),
      ...lavfi(`sine=frequency=330:sample_rate=48000:duration=${SECONDS}`),
      ...["-c:v", "libx264", "-preset", "ultrafast", "-crf", "18", "-pix_fmt", "yuv420p", "-c:a", "aac", source],
    ]);
    const samples = { ours: [] as number[], theirs: [] as number[] };
    for (let round = 0; round < ROUNDS; round++) {
      samples.ours.push(await secondsWith(2, source, join(work.path, `two-${round}`)));
      samples.theirs.push(await secondsWith(1, source, join(work.path, `one-${round}`)));
    }
    return [
      compare(`${JOBS} jobs of ${SECONDS} s by two workers`, samples, {
        reference: "by one",
        unit: "s",
        bar: { atMost: 1 },
      }),
    ];
  } finally {
    work.remove();
  }
}

async function secondsWith(workers: number, source: string, data: string): Promise<number> {
  const server = await startVodbox(data, { workers });
  try {
    const api = tenantApi(server.base, (await tenantWithKey(server.base)).key);
    const from = performance.now();
    for (let job = 0; job < JOBS; job++) await uploadFile(api, source, {}, () => {});
    for (;;) {
      const assets = await api<{ playback_status: string }[]>("GET", "/api/v1/assets");
      if (assets.some(({ playback_status }) => playback_status === "errored")) throw new Error("A job failed");
      if (assets.filter(({ playback_status }) => playback_status === "ready").length === JOBS) break;
      await sleep(100);
    }
    return (performance.now() - from) / 1000;
  } finally {
    await server.stop();
  }
}
