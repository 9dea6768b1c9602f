import { globSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tenantApi, uploadFile } from "#cli/api.ts";
import type { Asset } from "#features/assets/schema.ts";
import { chooseTools } from "../build/tools.ts";
import { cpuShare } from "./cpu-share.ts";
import { ADMIN, EXECUTABLE, start, tenantWithKey, WORKER, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";
import { makeSource } from "./source.ts";
import { type PlayerName, startViewer } from "./viewer.ts";

const POLL_MS = 50;
/** Options: lengths in seconds, the size, players, from which length a source is only started, and whether its video fits. */
const LENGTHS = (process.env.VODBOX_BENCH_LENGTHS ?? "10,60,600").split(",").map(Number);
const SIZE = process.env.VODBOX_BENCH_SIZE ?? "1920x1080";
const PLAYERS = (process.env.VODBOX_BENCH_PLAYERS ?? "hls.js,dash.js").split(",").filter(Boolean) as PlayerName[];
const PARTIAL_FROM = Number(process.env.VODBOX_BENCH_PARTIAL_FROM ?? 3600);
const IS_FIT = process.env.VODBOX_BENCH_FIT === "1";
const WATCH_SECONDS = 20;
const SEGMENT_SECONDS = 4;

type Seconds = number;
type Measured = {
  firstFrame: Seconds;
  stalled: Seconds | null;
  seek: Seconds | null;
  /** Null when the bench did not wait for it. */
  complete: Seconds | null;
  cpu: Seconds;
  bytes: number;
};
type Options = { seconds: number; isEarly: boolean; player: PlayerName | null; isPartial: boolean };

/** All times begin when `complete` is answered. Processor time is that of the server and its worker, without the browser. */
async function played(folder: string, source: string, options: Options): Promise<Measured> {
  mkdirSync(folder);
  const data = join(folder, "data");
  const share = cpuShare("server", 2);
  const args = ["serve", "--data", data, "--port", "0", "--workers", "1", "--log-level", "warn"];
  const server = await start("sh", ["-c", `${share.join} && exec "$0" "$@"`, EXECUTABLE, ...args], {
    VODBOX_ADMIN_TOKEN: ADMIN,
    VODBOX_WORKER_TOKEN: WORKER,
    VODBOX_PARALLEL: options.isEarly ? "auto" : "off",
  });
  const viewer = options.player && (await startViewer());
  try {
    const api = tenantApi(server.base, (await tenantWithKey(server.base)).key);
    const { asset_id } = await uploadFile(api, source, { early_playback: options.isEarly }, () => {});
    const cpuBefore = share.usedSeconds();
    const from = performance.now();
    const since = () => (performance.now() - from) / 1000;
    const until = async (isReached: (asset: Asset) => boolean) => {
      for (;;) {
        const asset = await api<Asset>("GET", `/api/v1/assets/${asset_id}`);
        if (asset.playback_status === "errored") throw new Error("The encode failed.");
        if (isReached(asset)) return asset;
        await sleep(POLL_MS);
      }
    };
    const watched = async () => {
      const asset = await until(({ playback_status }) => playback_status === "ready");
      if (viewer && options.player) await viewer.open(options.player, `${server.base}/media/${asset.external_id}`);
      const firstFrame = since();
      if (!options.isEarly || !viewer) return { firstFrame, stalled: null, seek: null };
      const stalled = (await viewer.watch(Math.min(WATCH_SECONDS, options.seconds - 1))) / 1000;
      const isPartial = (await until(() => true)).encoding_status === "partial";
      // Within a segment: at the begin of one, hls.js first requests the one before it.
      const target = Math.floor((options.seconds * 0.9) / SEGMENT_SECONDS) * SEGMENT_SECONDS + 1;
      const seek = isPartial ? (await viewer.seek(target)) / 1000 : null;
      await viewer.close();
      return { firstFrame, stalled, seek };
    };
    const completed = async () => {
      if (options.isPartial) return null;
      await until(({ encoding_status }) => encoding_status === "complete");
      return since();
    };
    const [viewed, complete] = await Promise.all([watched(), completed()]);
    const files = globSync("**/*.m4s", { cwd: data });
    const bytes = files.reduce((sum, file) => sum + statSync(join(data, file)).size, 0);
    return { ...viewed, complete, cpu: share.usedSeconds() - cpuBefore, bytes };
  } finally {
    await viewer?.close();
    await server.stop();
    // Processes of the sandbox end after it.
    await sleep(500);
    share.remove();
  }
}

/**
 * One local worker, and a player in Chromium that opens the asset as soon as it is ready: the first frame, stalls in the
 * first seconds, a seek into what is not encoded yet, the complete encode; compared with a server without early playback
 * and parts. The players take processor time from the encoder, which an operator's machine would not lose.
 */
export async function benchInstant(): Promise<Result[]> {
  const work = workFolder();
  try {
    const { ffmpeg } = await chooseTools(process.arch as "x64");
    const results: Result[] = [];
    for (const seconds of LENGTHS) {
      const source = join(work.path, `${seconds}.mp4`);
      await makeSource(ffmpeg, source, { seconds, size: SIZE, isFit: IS_FIT });
      const isPartial = seconds >= PARTIAL_FROM;
      const name = (what: string) => `${seconds} s of ${SIZE}${IS_FIT ? ", copied" : ""}: ${what}`;
      const fixed = (what: string, value: number | null, limit: number) => {
        if (value === null) return;
        results.push(
          compare(
            name(what),
            { ours: [value], theirs: [limit] },
            {
              reference: "fixed limit",
              unit: "s",
              bar: { atMost: 1 },
            },
          ),
        );
      };
      const early: Partial<Record<PlayerName, Measured>> = {};
      for (const player of PLAYERS) {
        const options = { seconds, isEarly: true, player, isPartial: isPartial || player === "dash.js" };
        const one = await played(join(work.path, `${seconds}-${player}`), source, options);
        console.error(name(player), one);
        early[player] = one;
        fixed(`first frame in ${player}`, one.firstFrame, IS_FIT ? 3 : 5);
        fixed(`without progress in the first ${WATCH_SECONDS} s in ${player}`, one.stalled, 0.5);
        fixed(`seek into what is not encoded, next to the encode, in ${player}`, one.seek, 4);
      }
      if (isPartial) continue;
      const options = { seconds, isEarly: false, player: "hls.js", isPartial: false } as const;
      const before = await played(join(work.path, `${seconds}-before`), source, options);
      console.error(name("before"), before);
      const versus = (what: string, ours: number, theirs: number, unit: string, atMost: number) =>
        results.push(
          compare(
            name(what),
            { ours: [ours], theirs: [theirs] },
            {
              reference: "in one run",
              unit,
              bar: { atMost },
            },
          ),
        );
      const after = early["hls.js"];
      if (after) {
        versus("first frame", after.firstFrame, before.firstFrame, "s", 1);
        versus("complete, with a player", after.complete ?? 0, before.complete ?? 0, "s", 1.1);
        versus("processor time, with a player", after.cpu, before.cpu, "s", 1.1);
      }
      // A player that decodes on the same cores makes the encoder slower also by the caches that they share.
      const alone = await played(join(work.path, `${seconds}-alone`), source, {
        seconds,
        isEarly: true,
        player: null,
        isPartial: false,
      });
      console.error(name("without a player"), alone);
      versus("complete, without a player", alone.complete ?? 0, before.complete ?? 0, "s", 1.1);
      versus("processor time, without a player", alone.cpu, before.cpu, "s", 1.1);
      versus("segments", (after ?? alone).bytes / 1e6, before.bytes / 1e6, "MB", 1.01);
    }
    return results;
  } finally {
    work.remove();
  }
}
