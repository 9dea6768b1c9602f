import type { Asset } from "#features/assets/schema.ts";
import { sleep } from "#lib/base";
import { RequestRefused } from "../push/http.ts";
import type { FileSender } from "../push/send.ts";
import type { Entry, Ledger } from "./ledger.ts";

/** How far durations may differ, in seconds; and by how much more when the provider rounds them. */
const TOLERANCE_SECONDS = 0.5;
const ROUNDING_SECONDS = 1;
const LOOK_AGAIN_MS = 500;
/** Videos are encoded in about the order of their uploads, so the oldest are polled. */
const AT_ONCE = 20;
/** Without a change in any of them for this long, they are left for a later run; and when the encoding of none has begun. */
const STALLED_MS = 15 * 60_000;
const NOT_BEGUN_MS = 60_000;

export type Verifier = {
  /** An asset with all that belongs to it. */
  add(id: string): void;
  /** No more will be added. Resolves when all are verified. */
  close(): Promise<void>;
  waiting(): number;
};

/** What differs between an asset and its video; empty when nothing does. `captions`: how many the asset has. */
export function differences(entry: Entry, asset: Asset, captions: number): string[] {
  const problems: string[] = [];
  if (entry.bytes !== undefined && asset.source_bytes !== entry.bytes)
    problems.push(`the asset has ${asset.source_bytes} bytes, the video ${entry.bytes}`);
  const most = TOLERANCE_SECONDS + (entry.isWholeSeconds ? ROUNDING_SECONDS : 0);
  if (entry.seconds != null && Math.abs(asset.duration_seconds - entry.seconds) > most)
    problems.push(`the asset lasts ${asset.duration_seconds} s, the video ${entry.seconds} s`);
  if (captions < (entry.captions ?? 0))
    problems.push(`the asset has ${captions} captions, the video ${entry.captions}`);
  return problems;
}

type Verifying = {
  sender: FileSender;
  ledger: Ledger;
  onVerified(): void;
};

/**
 * Waits until assets are encoded, and compares them with what the provider stated. Results are in the ledger: the stage, and
 * problems.
 */
export function verifier({ sender, ledger, onVerified }: Verifying): Verifier {
  const { call, patience } = sender;
  let queue: string[] = [];
  let isClosed = false;
  let wake = () => {};

  /** The asset's state as text, null when it is done. */
  async function look(id: string): Promise<string | null> {
    const entry = ledger.get(id) as Entry;
    const at = `/assets/${entry.assetId}`;
    try {
      const asset = await patience.until(() => call<Asset>("GET", at));
      if (asset.playback_status === "errored")
        ledger.put(id, { problems: [`the video cannot be encoded: ${asset.error?.message ?? "unknown error"}`] });
      else if (asset.playback_status !== "ready") return `${asset.playback_status} ${asset.stage} ${asset.progress}`;
      else {
        const subtitles = entry.captions ? await patience.until(() => call<unknown[]>("GET", `${at}/subtitles`)) : [];
        const problems = differences(entry, asset, subtitles.length);
        ledger.put(id, { stage: "verified", problems: [...(entry.problems ?? []), ...problems] });
      }
    } catch (error) {
      if (!(error instanceof RequestRefused) || error.status !== 404) throw error;
      ledger.put(id, { problems: ["the asset was deleted during the import"] });
    }
    onVerified();
    return null;
  }

  async function work(): Promise<void> {
    let states = "";
    let changedAt = Date.now();
    for (;;) {
      if (queue.length === 0) {
        if (isClosed) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        changedAt = Date.now();
        continue;
      }
      const seen: [string, string][] = [];
      let hasBegun = false;
      for (const id of queue.slice(0, AT_ONCE)) {
        const state = await look(id);
        if (state === null) queue = queue.filter((each) => each !== id);
        else seen.push([id, state]);
        hasBegun ||= state !== null && !state.endsWith(" 0");
      }
      const now = JSON.stringify(seen);
      if (now !== states) changedAt = Date.now();
      states = now;
      // No worker runs, or other videos are encoded first.
      if (isClosed && Date.now() - changedAt > (hasBegun ? STALLED_MS : NOT_BEGUN_MS)) return;
      if (seen.length > 0) await sleep(LOOK_AGAIN_MS);
    }
  }

  const done = work();
  // Reported by `close`, which may be called much later.
  done.catch(() => {});
  return {
    add(id) {
      queue.push(id);
      wake();
    },
    close() {
      isClosed = true;
      wake();
      return done;
    },
    waiting: () => queue.length,
  };
}
