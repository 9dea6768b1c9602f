import { PassThrough, Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { sleep } from "#lib/base";
import { MediaError } from "#media/error.ts";
import { run } from "#media/ffmpeg.ts";
import { liveArguments } from "#media/live-arguments.ts";
import { MAX_DURATION_SECONDS } from "#media/plan.ts";
import type { LiveContract } from "#protocol/live-encode.ts";
import type { JobContext } from "./context.ts";
import { backoffMs, ServerRefused } from "./lease-client.ts";

const WAIT_SECONDS = 20;
/** Between two requests to a server that does not hold them. */
const IDLE_MS = 1000;

/**
 * Encodes the renditions of live streams, one after another, until the worker stops. Resolves earlier with a server that has
 * none. Throws ServerRefused for a wrong token.
 */
export async function liveLoop(context: JobContext): Promise<null> {
  const { client, signal, log } = context;
  let failures = 0;
  while (!signal.aborted) {
    const askedAt = performance.now();
    try {
      const contract = await client.nextLive({ waitSeconds: WAIT_SECONDS, signal });
      failures = 0;
      if (contract) await encodeLive(contract, context);
      await pause(IDLE_MS - (performance.now() - askedAt), signal);
    } catch (error) {
      if (signal.aborted) return null;
      if (error instanceof ServerRefused) {
        // A server of an earlier version.
        if (error.status === 404 || error.status === 405) return null;
        if (error.status === 401 || error.status === 403) throw error;
      }
      failures++;
      // The loop for jobs has logged that the server is unreachable.
      if (failures % 30 === 0) log.warn({ error: String(error) }, "Live streams could not be requested.");
      await pause(backoffMs(failures), signal);
    }
  }
  return null;
}

/** Encodes until the stream, the lease or the worker ends. Never throws: the server offers the rest again. */
async function encodeLive(contract: LiveContract, context: JobContext): Promise<void> {
  const { client, log, binaries, memoryBytes, scratch } = context;
  const { channel, lease_token: lease, renditions, input_url, output_url } = contract;
  const fields = { channel, renditions: renditions.map(({ name }) => name) };
  const ended = new AbortController();
  let refusal: unknown = null;
  const signal = AbortSignal.any([context.signal, ended.signal]);
  log.info(fields, "Live encode started.");
  try {
    const { body } = await client.stream(input_url, { lease, signal });
    if (!body) throw new MediaError("source_missing", "The stream has no body.", true);
    const output = new PassThrough();
    const sent = client
      .stream(output_url, {
        method: "POST",
        lease,
        signal,
        duplex: "half",
        body: Readable.toWeb(output) as NonNullable<RequestInit["body"]>,
      } as RequestInit & { lease: string })
      // The run ends by itself once its output is taken.
      .then(() => output.readableEnded || ended.abort());
    // A lease that the server has ended aborts the run: its answer is the reason.
    sent.catch((error) => {
      refusal = error;
      ended.abort();
    });
    await run(binaries.ffmpeg, {
      args: liveArguments(renditions.map(({ max_bitrate: maxBitrate, ...one }) => ({ ...one, maxBitrate }))),
      input: Readable.fromWeb(body as ReadableStream),
      output,
      signal,
      memoryBytes,
      pidDir: scratch.pidDir,
      timeLimitMs: MAX_DURATION_SECONDS * 1000,
    });
    await sent;
    log.info(fields, "Live encode completed.");
  } catch (error) {
    if (!context.signal.aborted) log.warn({ ...fields, error: String(refusal ?? error) }, "Live encode ended.");
  } finally {
    ended.abort();
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => {});
}
