import { setInterval } from "#lib/base";
import type { ImportSourceName } from "#model/import-sources.ts";
import { type Api, RequestRefused } from "../push/http.ts";
import type { Failure } from "./report.ts";

const EVERY_MS = 2000;
/** The limits of the API. */
const MAX_PROBLEMS = 100;
const MAX_PROBLEM_BYTES = 60_000;
const MAX_TEXT = 500;

/** What has been done so far: fields of the API's ImportRunPatch. */
export type Counts = {
  imported: number;
  unchanged: number;
  failed: number;
  encoding: number;
  bytes: number;
};
export type End = Counts & { error: string | null; problems: readonly Failure[] };

/** Reports one run to the server, where people see it in the console. */
export type ServerReport = {
  /** The last report. Resolves when the server has it, or does not take it. */
  end(end: End): Promise<void>;
  stop(): void;
};

type Run = { provider: ImportSourceName; source: string | null; total: number; tenantId: number | undefined };

/**
 * Begins to report what `counts` returns, every two seconds. A server that does not take reports, of an older version or for a
 * key without the scope, gets no more; a connection that fails is tried again with the next report. It never fails an import.
 */
export async function reportToServer(call: Api, run: Run, counts: () => Counts): Promise<ServerReport> {
  const { tenantId, ...about } = run;
  let id = await call<{ id: number }>("POST", "/import_runs", {
    ...about,
    source: about.source && cut(about.source),
    ...(tenantId !== undefined && { tenant_id: tenantId }),
  }).then(
    (created) => created.id,
    () => null,
  );
  let sending: Promise<void> = Promise.resolve();
  async function send(body: object): Promise<void> {
    if (id === null) return;
    try {
      await call("PATCH", `/import_runs/${id}`, body);
    } catch (error) {
      if (error instanceof RequestRefused) id = null;
    }
  }
  let isBusy = false;
  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    sending = send(counts()).finally(() => {
      isBusy = false;
    });
  }, EVERY_MS);
  const stop = () => clearInterval(timer);
  return {
    stop,
    async end({ error, problems, ...last }) {
      stop();
      await sending;
      await send({
        ...last,
        error: error === null ? null : cut(error),
        status: error === null && last.failed === 0 ? "completed" : "failed",
        problems: firstOf(problems),
        problem_count: problems.length,
      });
    },
  };
}

const cut = (text: string) => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT - 1)}…`.toWellFormed() : text);

/** As many problems as a report can have. */
function firstOf(problems: readonly Failure[]): Failure[] {
  const first: Failure[] = [];
  let bytes = 0;
  for (const { source_id, title, asset_id, reason } of problems.slice(0, MAX_PROBLEMS)) {
    const problem = { source_id: cut(source_id), title: cut(title), asset_id, reason: cut(reason) };
    bytes += Buffer.byteLength(JSON.stringify(problem)) + 1;
    if (bytes > MAX_PROBLEM_BYTES) break;
    first.push(problem);
  }
  return first;
}
