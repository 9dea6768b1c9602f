import type { Params, Result } from "#clients/typescript/types.ts";
import { vodbox } from "#web/console/api.ts";
import type { Selection } from "./selection.ts";

/** Assets of one request: a few seconds of work, after which Stop has an effect. */
const BATCH = 200;
const SAMPLES = 5;

type Change = Params<"changeAssets">["body"];
export type Action = Pick<Change, "action" | "collection_id" | "tags" | "playback_policy">;
export type Failure = Result<"changeAssets">["errors"][number];

export type Progress = {
  total: number;
  applied: number;
  refused: number;
  /** The first refusals. */
  samples: Failure[];
  state: "running" | "stopped" | "done" | "failed";
  error: unknown;
};

/**
 * Changes each selected asset, in batches of one request each. All that match are read by cursor from the newest one down:
 * assets that are created meanwhile are not changed, and only one batch is in memory.
 */
export function changeMany(
  { selection, params, total }: { selection: Selection; params: Params<"listAssets">; total: number },
  action: Action,
  onProgress: (progress: Progress) => void,
): { stop(): void; end: Promise<void> } {
  let progress: Progress = { total, applied: 0, refused: 0, samples: [], state: "running", error: null };
  let isStopped = false;
  const report = (next: Partial<Progress>) => {
    progress = { ...progress, ...next };
    onProgress(progress);
  };
  const run = async () => {
    report({});
    try {
      // Others would be refused, one by one.
      const isNarrowed = selection.isAll && action.action === "retry" && params.playback_status === undefined;
      const wanted = isNarrowed ? { ...params, playback_status: "errored" as const } : params;
      if (isNarrowed) report({ total: Math.min(total, (await vodbox.listAssetPages(wanted)).count) });
      for await (const ids of batchesOf(selection, wanted)) {
        if (isStopped) break;
        const { applied, errors } = await vodbox.changeAssets({ body: { ...action, ids } }, { maxRetries: 8 });
        report({
          applied: progress.applied + applied.length,
          refused: progress.refused + errors.length,
          samples: [...progress.samples, ...errors].slice(0, SAMPLES),
        });
      }
      report({ state: isStopped ? "stopped" : "done" });
    } catch (error) {
      report({ state: "failed", error });
    }
  };
  return {
    stop() {
      isStopped = true;
    },
    end: run(),
  };
}

async function* batchesOf({ isAll, ids }: Selection, params: Params<"listAssets">): AsyncGenerator<number[]> {
  if (!isAll) {
    const all = [...ids];
    for (let from = 0; from < all.length; from += BATCH) yield all.slice(from, from + BATCH);
    return;
  }
  const list = vodbox.listAssets({ ...params, sort: "newest" });
  for (let cursor: string | undefined; ; ) {
    const page = await list.page({ limit: BATCH, ...(cursor !== undefined && { cursor }) });
    const some = page.items.map(({ id }) => id).filter((id) => !ids.has(id));
    if (some.length > 0) yield some;
    if (page.cursor === null) return;
    cursor = page.cursor;
  }
}
