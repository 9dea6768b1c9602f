import fc from "fast-check";
import { anyDocument, type FuzzDocument } from "./documents.ts";
import { type Fixtures, type FuzzServer, furnish, MANIFEST, putFile } from "./fixtures.ts";
import { monitor } from "./monitor.ts";
import { type FuzzRequest, requestTo, type Sent, sentBy } from "./requests.ts";
import { type FuzzRoute, routeTable } from "./route-table.ts";

/** Requests per round, each with new tenants. */
const ROUND = 500;
/** Documents per round that are put into a batch and checked. */
const INGESTED = 25;
/** Features that are not configured, or full queues. No other response of 500 and above is permitted. */
const EXPECTED = new Set([
  ...[
    "translation_not_configured",
    "transcription_not_configured",
    "payments_not_configured",
    "storage_not_configured",
  ],
  ...["busy", "not_implemented"],
]);
const TIMEOUT_MS = 30_000;

export type RouteReport = {
  requests: number;
  statuses: Record<string, number>;
  failures: string[];
  longestStallMs: number;
  longestWaitMs: number;
  stalledBy: string;
  /** Resident memory of the server in MiB after each round. */
  memory: number[];
  seconds: number;
};

/** Sends `runs` requests to all routes of a running server, by two tenants and anonymous clients. */
export async function fuzzRoutes(
  server: FuzzServer,
  { runs, seed, report: onRound = () => {} }: { runs: number; seed: number; report?: (done: RouteReport) => void },
): Promise<RouteReport> {
  const routes = await routeTable();
  let current = "";
  const watch = monitor(server, () => current);
  const from = performance.now();
  const report: RouteReport = {
    requests: 0,
    statuses: {},
    failures: [],
    memory: [],
    seconds: 0,
    longestStallMs: 0,
    longestWaitMs: 0,
    stalledBy: "",
  };
  const send = async (sent: Sent, target: FuzzRoute | null): Promise<void> => {
    current = `${sent.method} ${sent.path.slice(0, 300)} ${JSON.stringify(sent.headers).slice(0, 300)} ${String(sent.body).slice(0, 300)}`;
    report.requests++;
    const fault = await faultOf(server, sent, target, report.statuses);
    if (fault) throw new Error(fault);
  };
  try {
    for (let round = 0; report.requests < runs; round++) {
      const fixtures = await furnish(server);
      const left = Math.min(ROUND, runs - report.requests);
      const options = { seed: seed + round, endOnFailure: true };
      // First, because the requests may cancel batches and suspend tenants.
      const ingesting = fc.asyncProperty(anyDocument, (document) => ingest(server, fixtures, document, send));
      const ingested = await fc.check(ingesting, { ...options, numRuns: Math.min(INGESTED, left) });
      if (ingested.failed) report.failures.push(describe(ingested, current));
      const property = fc.asyncProperty(requestTo(routes), (request: FuzzRequest) =>
        send(sentBy(request, fixtures), request.target),
      );
      const outcome = await fc.check(property, { ...options, numRuns: left });
      if (outcome.failed) report.failures.push(describe(outcome, current));
      report.memory.push(watch.memory());
      report.seconds = (performance.now() - from) / 1000;
      onRound(report);
    }
  } finally {
    current = "";
    await watch.stop().catch((error) => report.failures.push(`The server stopped answering: ${error}`));
  }
  report.longestStallMs = watch.longestStallMs;
  report.longestWaitMs = watch.longestWaitMs;
  report.stalledBy = watch.during;
  report.seconds = (performance.now() - from) / 1000;
  return report;
}

const describe = ({ errorInstance, seed }: { errorInstance: unknown; seed?: number }, current: string) =>
  `seed ${seed}: ${errorInstance instanceof Error ? errorInstance.message : String(errorInstance)}\n  ${current}`;

/** The fault of a response, or null. */
async function faultOf(
  { base }: FuzzServer,
  { method, path, headers, body }: Sent,
  target: FuzzRoute | null,
  statuses: Record<string, number>,
): Promise<string | null> {
  let response: Response;
  let text: string;
  try {
    const url = path.startsWith("http") ? path : base + path;
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const init = { method, headers, redirect: "manual", signal, ...(body !== undefined && { body }) };
    response = await fetch(url, init as RequestInit);
    text = isEndless(response) ? "" : await response.text();
    if (isEndless(response)) await response.body?.cancel();
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: string };
    // The connection may close after the refusal of a large body before all of it is sent.
    const isLarge = body !== undefined && body.length > 1_000_000;
    if (isLarge && (code === "EPIPE" || code === "ECONNRESET" || code === "UND_ERR_SOCKET")) return null;
    return `no answer: ${(error as Error).message} ${code ?? ""}`;
  }
  statuses[response.status] = (statuses[response.status] ?? 0) + 1;
  const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
  const answer =
    isJson && text !== "" ? (JSON.parse(text) as { code?: string; error?: string; request_id?: string }) : {};
  if (response.status >= 500 && !EXPECTED.has(answer.code ?? "")) return `${response.status} ${text.slice(0, 300)}`;
  // Node itself answers 431 to headers of over 16 KiB.
  if (response.status < 400 || response.status === 431 || method === "HEAD" || target?.route.hidden) return null;
  const isShaped = typeof answer.code === "string" && typeof answer.error === "string" && !!answer.request_id;
  return isShaped ? null : `an error of another shape: ${response.status} ${text.slice(0, 300)}`;
}

const isEndless = ({ headers }: Response) => headers.get("content-type") === "text/event-stream";

let ingestions = 0;

/** Uses a document as each kind of playlist, manifest or text, and requests a check of the batch. */
async function ingest(
  { base }: FuzzServer,
  { batch }: Fixtures,
  { extension, text }: FuzzDocument,
  send: (sent: Sent, target: null) => Promise<void>,
): Promise<void> {
  if (text === "" || extension === "csv") return;
  const name = `fuzzed-${++ingestions}.${extension}`;
  await putFile(base, batch, name, text);
  const fields = {
    m3u8: { hls: { manifest_path: name } },
    mpd: { dash: { manifest_path: name } },
    vtt: { storyboard_path: name, subtitles: [{ language: "en", label: "English", path: name }] },
    srt: { subtitles: [{ language: "en", label: "English", path: name }] },
    ttml: { subtitles: [{ language: "en", label: "English", path: name }] },
  }[extension];
  const headers = { ...batch.headers, "content-type": "application/json" };
  const body = JSON.stringify({ assets: [{ ...MANIFEST, ...fields }] });
  await send({ method: "POST", path: `${batch.path}/manifest/preview`, headers, body }, null);
}
