import type { CallToolResult, Tool } from "@modelcontextprotocol/server";
import { type App, forApp } from "#app.ts";
import { sleep } from "#lib/base";
import type { Json } from "#platform/http/openapi-schema.ts";
import type { CallContext } from "./server.ts";

/** Clients of the official SDK end a request after 60 s, unless they receive progress. */
const DEFAULT_SECONDS = 50;
const MAX_SECONDS = 300;
const POLL_MS = 500;
/** So often at least a client that asked for progress receives some. */
const KEEP_ALIVE_MS = 10_000;
/** What progress grows by without any: each value must be larger than the one before (MCP, Progress). */
const NO_PROGRESS = 0.001;

export const WAIT: Tool = {
  name: "wait_until_ready",
  title: "Wait until a video or captions are ready",
  description: `Wait until an asset can be watched, or generated captions are there, or have failed; with progress. Returns the asset or the job as it is then, or after ${DEFAULT_SECONDS} seconds: call it again in that case.`,
  inputSchema: {
    type: "object",
    properties: {
      asset_id: { type: "integer", description: "The asset to wait for" },
      job_id: { type: "integer", description: "Instead: the job that encodes again, trims or joins" },
      caption_job_id: { type: "integer", description: "Instead: the job that generate_subtitle returned" },
      seconds: {
        type: "integer",
        minimum: 1,
        maximum: MAX_SECONDS,
        description: `The longest time to wait; more than ${DEFAULT_SECONDS} only if the client accepts progress`,
      },
    },
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

/** Requests of one tenant, or of the admin token, that wait in this process: each reads twice a second. */
const MAX_WAITING = 50;
const waitingOf = forApp(() => new Map<number | undefined, number>());

const answer = (text: string): CallToolResult => ({ content: [{ type: "text", text }], isError: true });

/** What can be waited for, by argument: the operation that reads it. */
const READERS = new Map([
  ["asset_id", "get_asset"],
  ["job_id", "get_job"],
  ["caption_job_id", "get_caption_job"],
]);
export type Waited = { operation: string; id: unknown };

const isEnded = (record: Json): boolean =>
  "playback_status" in record
    ? record.playback_status === "ready" || record.playback_status === "errored" || record.input_status === "failed"
    : !["queued", "running"].includes(String(record.status));

type Reader = (waited: Waited) => Promise<{ result: CallToolResult; record: Json | null }>;

/**
 * Reads until what `args` name is ready or has failed, the time is over, or the client or the server ends. The result is that
 * of the last reading.
 */
async function untilReady(args: Json, read: Reader, { report, signal }: CallContext): Promise<CallToolResult> {
  const { seconds = DEFAULT_SECONDS, ...ids } = args;
  const [[name = "", id] = [], ...others] = Object.entries(ids);
  const operation = READERS.get(name);
  if (operation === undefined || others.length > 0)
    return answer(`One of ${[...READERS.keys()].join(", ")} is required, and seconds is optional.`);
  if (typeof seconds !== "number" || !(seconds >= 1 && seconds <= MAX_SECONDS))
    return answer(`seconds must be a number from 1 to ${MAX_SECONDS}.`);
  const end = performance.now() + seconds * 1000;
  let reported = -1;
  let reportedAt = Number.NEGATIVE_INFINITY;
  for (;;) {
    const { result, record } = await read({ operation, id });
    if (!record || isEnded(record) || signal.aborted || performance.now() >= end) return result;
    const progress = Number(record.progress ?? 0);
    const isSilent = performance.now() - reportedAt >= KEEP_ALIVE_MS;
    if (progress > reported || isSilent) {
      reported = Math.max(progress, reported + NO_PROGRESS);
      reportedAt = performance.now();
      await report?.(reported, String(record.stage ?? record.playback_status ?? record.status));
    }
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
}

/** `owner`: the tenant of the caller, as `ownerOf` returns it. The result is an error when too many of its requests wait. */
export async function waitUntilReady(
  app: App,
  owner: number | undefined,
  ...[args, read, context]: Parameters<typeof untilReady>
): Promise<CallToolResult> {
  const waiting = waitingOf(app);
  const count = waiting.get(owner) ?? 0;
  if (count >= MAX_WAITING)
    return answer(`At most ${MAX_WAITING} requests can wait at the same time; try again later.`);
  waiting.set(owner, count + 1);
  try {
    return await untilReady(args, read, context);
  } finally {
    const left = (waiting.get(owner) ?? 1) - 1;
    if (left > 0) waiting.set(owner, left);
    else waiting.delete(owner);
  }
}
