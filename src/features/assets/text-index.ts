import type { App } from "#app.ts";
import { yieldToRequests } from "#lib/base";
import { continueTextIndexMerge, type TextIndex } from "#storage/db/text-index.ts";

/** The rest is merged by the next run. */
const MAX_STEPS = 500;

/** Merges what changes have added to a text index, in steps between which others write. */
export async function mergeTexts(app: App, index: TextIndex = "assets_text"): Promise<void> {
  for (let step = 0; step < MAX_STEPS && !app.stopping.aborted; step++) {
    if (!(await app.write((tx) => continueTextIndexMerge(tx, index)))) return;
    await yieldToRequests();
  }
}
