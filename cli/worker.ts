import { availableParallelism, hostname, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { UserError, withoutTrailing } from "#lib/base";
import { cacheDir, programVersion, resolveBinaries } from "#lib/executable";
import { envName } from "#platform/config/settings.ts";
import { configuredTranscriber } from "#platform/outbound/transcribe/configured.ts";
import { localModels } from "#platform/outbound/transcribe/whisper/models.ts";
import { createLog, logProcess } from "#src/log.ts";
import { startTracing } from "#src/tracing.ts";
import { ServerRefused, ServerUnreachable } from "#worker/lease-client.ts";
import { MIN_FREE_BYTES, startWorker } from "#worker/loop.ts";
import { serverModels } from "#worker/speech-models.ts";
import { type Progress, showProgress } from "./progress.ts";
import { settingsOf } from "./settings.ts";
import { onStopSignal } from "./signals.ts";

type Options = {
  server?: string;
  token?: string;
  local?: boolean;
  once?: boolean;
  concurrency?: string;
  scratch?: string;
};

/** One encode uses eight cores and up to two gigabytes. */
const ownConcurrency = () =>
  Math.max(1, Math.min(Math.floor(availableParallelism() / 8), Math.floor(totalmem() / 2 ** 31)));

export async function workerCommand(command: Command): Promise<void> {
  const options = command.opts<Options>();
  const config = settingsOf(command);
  let token = options.token ?? config.worker_token ?? "";
  if (!options.server || !URL.canParse(options.server))
    throw new UserError("Specify the server, such as --server http://127.0.0.1:8080.", 2);
  if (!token)
    throw new UserError(
      "Set the worker token with VODBOX_WORKER_TOKEN or --token; `vodbox admin token show worker` prints it.",
      2,
    );
  const concurrency = options.concurrency === undefined ? ownConcurrency() : Number(options.concurrency);
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 64)
    throw new UserError("--concurrency must be a whole number from 1 to 64.", 2);

  const stop = new AbortController();
  const beginStop = onStopSignal(async () => stop.abort(), { secondAtOnce: !options.local, isLogged: true });
  if (options.local) {
    // The server holds the other end: a line is a new token, and its end means that the server has exited, even after
    // kill -9.
    process.stdin.on("error", beginStop);
    createInterface({ input: process.stdin })
      .on("line", (line) => {
        token = line;
      })
      .on("close", beginStop);
  }
  const log = await createLog(config);
  logProcess(log);
  const server = withoutTrailing(options.server, "/");
  const scratchDir =
    options.scratch ??
    (options.local ? join(config.data_dir, "scratch") : join(tmpdir(), `vodbox-worker-${process.geteuid?.() ?? 0}`));
  const models = options.local
    ? localModels(config.data_dir, config.whisper_model)
    : serverModels({ server, token: () => token, scratchDir, minFreeBytes: MIN_FREE_BYTES });
  const { transcriber, missing } = await configuredTranscriber(config, models);
  if (missing.length > 0) log.warn({ missing: missing.map(envName) }, "Captions cannot be created.");
  const bar =
    process.stderr.isTTY && config.log_format !== "json" && concurrency === 1 && !options.local ? progressBar() : null;
  const tracer = await startTracing("worker", log);
  const end = await startWorker({
    tracer,
    server,
    token: () => token,
    workerId: `${hostname()}-${process.pid}`,
    version: programVersion(),
    concurrency,
    scratchDir,
    binaries: await resolveBinaries({ ffmpeg: config.ffmpeg, ffprobe: config.ffprobe, cacheDir: cacheDir() }),
    memoryBytes: config.ffmpeg_memory_bytes,
    // A worker of this machine's server writes to the server's disk.
    ...(options.local && { minFreeBytes: config.min_free_bytes }),
    encoder: config.encoder,
    liveEncodes: config.live_encodes,
    transcriber,
    ...(options.local && { sharedDisk: { dataDir: config.data_dir } }),
    log: log.child({ worker: process.pid }),
    ...(options.once && { isOnce: true }),
    ...(bar && { onProgress: bar.update }),
    signal: stop.signal,
  }).catch((error) => {
    if (error instanceof ServerUnreachable) throw new UserError(error.message);
    if (!(error instanceof ServerRefused)) throw error;
    throw new UserError(
      `The server at ${server} rejected the worker token; set the token that \`vodbox admin token show worker\` prints on the server with VODBOX_WORKER_TOKEN or --token.`,
    );
  });
  bar?.done();
  await tracer?.close();
  process.exit(options.once && end !== null && end !== "completed" ? 1 : 0);
}

/** One bar per job. */
function progressBar() {
  let shown: { id: number; progress: Progress } | null = null;
  const done = () => {
    shown?.progress.done();
    shown = null;
  };
  return {
    done,
    update(job: { id: number; stage: string; progress: number }) {
      if (shown?.id !== job.id) {
        done();
        shown = { id: job.id, progress: showProgress(`job ${job.id}`) };
      }
      shown.progress.update(job.progress / 100, job.stage);
      if (job.progress >= 100) done();
    },
  };
}
