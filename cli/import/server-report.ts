import { setInterval, sleep } from "#lib/base";
import { type ImportSourceName, MAX_IMPORT_PROBLEM_BYTES, MAX_IMPORT_PROBLEMS } from "#model/import-sources.ts";
import { type Api, RequestRefused } from "../push/http.ts";
import type { Failure } from "./report.ts";

const EVERY_MS = 2000;
const ALIVE_MS = 20_000;
/** Attempts to send the last report, which no other follows. */
const LAST_ATTEMPTS = 5;
/** Fewer characters than the API takes, so that a report has many problems. */
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
};

type Run = { provider: ImportSourceName; source: string | null; total: number; tenantId: number | undefined };

/**
 * Begins to report what `counts` returns: changes every two seconds, and that it runs every 20. A server that does not take reports,
 * of an older version or for a key without the scope, gets no more; what a failing connection lost is sent again with the next
 * report. It never fails an import.
 */
export function reportToServer(call: Api, run: Run, counts: () => Counts): ServerReport {
  const { tenantId, ...about } = run;
  const first = { ...about, source: about.source && cut(about.source), tenant_id: tenantId };
  let id: number | null = null;
  let isRefused = false;
  let sent = "";
  let sentAt = 0;

  /** Whether the server has it, or takes no reports. */
  async function send(body: object): Promise<boolean> {
    const text = JSON.stringify(body);
    if (isRefused || (text === sent && Date.now() - sentAt < ALIVE_MS)) return true;
    try {
      id ??= (await call<{ id: number }>("POST", "/import_runs", first)).id;
      await call("PATCH", `/import_runs/${id}`, body);
    } catch (error) {
      isRefused = error instanceof RequestRefused;
      return isRefused;
    }
    sent = text;
    sentAt = Date.now();
    return true;
  }

  let sending: Promise<unknown> = send(counts());
  let isBusy = false;
  const timer = setInterval(async () => {
    if (isBusy) return;
    isBusy = true;
    sending = send(counts());
    await sending;
    isBusy = false;
  }, EVERY_MS);
  return {
    async end({ error, problems, ...last }) {
      clearInterval(timer);
      await sending;
      const body = {
        ...last,
        error: error === null ? null : cut(error),
        status: error === null && last.failed === 0 ? "completed" : "failed",
        problems: firstOf(problems),
        problem_count: problems.length,
      };
      for (let attempt = 1; !(await send(body)) && attempt < LAST_ATTEMPTS; attempt++) await sleep(EVERY_MS);
    },
  };
}

/** The API takes no NUL, no half of a character, and no longer texts. */
const cut = (text: string) => {
  const clean = text.replaceAll("\0", "");
  return (clean.length > MAX_TEXT ? `${clean.slice(0, MAX_TEXT - 1)}…` : clean).toWellFormed();
};

/** As many problems as a report can have. */
function firstOf(problems: readonly Failure[]): Failure[] {
  const first: Failure[] = [];
  let bytes = "[]".length;
  for (const { source_id, title, asset_id, reason } of problems.slice(0, MAX_IMPORT_PROBLEMS)) {
    const problem = { source_id: cut(source_id), title: cut(title), asset_id, reason: cut(reason) };
    bytes += Buffer.byteLength(JSON.stringify(problem)) + 1;
    if (bytes > MAX_IMPORT_PROBLEM_BYTES) break;
    first.push(problem);
  }
  return first;
}
