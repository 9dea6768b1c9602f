import { UserError } from "#lib/base";
import { inSpan } from "#lib/tracing";
import { FileFault, RequestRefused } from "../push/http.ts";
import { limited } from "./dry-run.ts";
import { type Importing, importVideo } from "./import-video.ts";
import { actionFor, forEachBounded, videosOf } from "./plan.ts";
import type { ImportProgress } from "./progress.ts";
import { ItemError, type Listed } from "./source.ts";
import type { Verifier } from "./verify.ts";

type Run = {
  importing: Importing;
  verifier: Verifier;
  progress: ImportProgress;
  atOnce: number;
  limit: number;
  /** Whether to wait until videos are encoded. */
  waits: boolean;
  /** Filled while the run lasts. */
  outcome: Outcome;
};
export type Outcome = {
  /** Videos that the run worked on. */
  touched: Set<string>;
  unchanged: number;
  /** Videos that were not imported. */
  failed: number;
  /** Why not all videos were listed. */
  error: string | null;
};

export const newOutcome = (): Outcome => ({ touched: new Set(), unchanged: 0, failed: 0, error: null });

/** Errors of the target that are the same for every video. */
const concernsAll = (error: unknown) =>
  error instanceof RequestRefused
    ? [401, 403].includes(error.status)
    : error instanceof UserError && !(error instanceof FileFault);

/** Each video is a trace of its own, which the server and its workers may continue. */
const importTraced = (importing: Importing, listed: Listed): Promise<void> => {
  const { tracer, provider } = importing;
  const work = () => importVideo(importing, listed);
  return tracer ? inSpan(tracer, "import video", { attributes: { "vodbox.provider": provider } }, work) : work();
};

/** Imports all videos of a source. A video that fails does not stop the others; results are in the ledger. */
export async function runImport({ importing, verifier, progress, atOnce, limit, waits, outcome }: Run): Promise<void> {
  const { ledger, source } = importing;
  function fail({ id, title }: Listed, reason: string): void {
    ledger.put(id, { title, problems: [reason] });
    outcome.failed++;
    progress.finished();
  }
  async function one(listed: Listed): Promise<void> {
    const action = actionFor(listed, importing);
    if (action === "done") {
      outcome.unchanged++;
      return progress.finished();
    }
    outcome.touched.add(listed.id);
    if (action === "changed") {
      const reason = "another file has been imported under this id; delete the asset, or rename the file";
      return fail(listed, reason);
    }
    try {
      if (action !== "verify") await importTraced(importing, listed);
      if (waits) verifier.add(listed.id);
      else progress.finished();
    } catch (error) {
      if (concernsAll(error)) throw error;
      const reason = (error instanceof Error ? error.message : String(error)).replace(/\.$/, "");
      fail(listed, reason);
    }
  }
  try {
    await forEachBounded(limited(videosOf(source), limit), atOnce, one);
  } catch (error) {
    if (!(error instanceof ItemError)) throw error;
    outcome.error = error.message;
  }
  await verifier.close();
}
