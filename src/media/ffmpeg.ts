import { spawn } from "node:child_process";
import { constants, setPriority } from "node:os";
import { basename } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { classify, MediaError } from "./error.ts";
import { forgetProcess, recordProcess } from "./orphan-processes.ts";
import { defaultMemoryBytes, sandboxedCommand, spawnServer } from "./sandbox/sandbox.ts";
import type { Spawned } from "./sandbox/spawn-server.ts";

export type Binaries = { ffmpeg: string; ffprobe: string };

export type RunOptions = {
  args: string[];
  /**
   * A folder of the run's own, which it may write: the process starts there, and HOME and TMPDIR point to it. Without
   * one it starts in `/` and has nowhere to write.
   */
  cwd?: string;
  /** Absolute paths outside of `cwd` that it may read; whatever it is not given it cannot open (sandbox/sandbox.ts). */
  reads?: readonly string[];
  /** Absolute paths of folders outside of `cwd` that it may read and write. */
  writes?: readonly string[];
  /** Whether it uses the devices of a hardware encoder. */
  devices?: boolean;
  signal?: AbortSignal;
  /** What it reads as `pipe:0`; it may leave off in the middle. */
  input?: Readable;
  /** The longest it may run at all. */
  timeLimitMs: number;
  /** The longest it may run without its output timeline moving on. Needs `-progress pipe:1` in `args`. */
  stallMs?: number;
  /** The output's position in seconds, about twice a second. Needs `-progress pipe:1` in `args`. */
  onPosition?: (seconds: number) => void;
  /** The most that it may allocate; see sandbox.ts. */
  memoryBytes?: number | undefined;
  /** Use the spawn server, so that starting the program does not block the event loop. */
  viaSpawnServer?: boolean;
  /** Where the process is recorded while it runs, for the next start to find (see orphans.ts). */
  pidDir?: string;
};

/** What all runs over one source share. */
export type SourceRun = Pick<RunOptions, "signal" | "pidDir" | "memoryBytes" | "reads" | "writes"> & { cwd: string };

const LOG_TAIL_BYTES = 8 * 1024;
const STDOUT_LIMIT_BYTES = 16 * 1024 * 1024;
const KILL_AFTER_MS = 2000;

/** Demuxers for what people upload. */
export const UPLOADABLE = "mov,matroska,avi,mpegts,mpeg,flv,ogg,asf,wav,mp3,aac,flac,mxf";

/**
 * Stands before every `-i` on a stranger's file. The protocol list alone does not stop a playlist named `.mp4` from
 * reading local files through its entries; the list of demuxers does.
 */
export const UNTRUSTED_INPUT = [
  ...["-protocol_whitelist", "file,pipe"],
  ...["-format_whitelist", UPLOADABLE],
  ...["-max_streams", "64"],
];

/** Arguments that name an untrusted file; `file:` keeps a name such as `http:x` or `-y` from meaning anything. */
export const untrustedInput = (path: string) => [...UNTRUSTED_INPUT, "-i", `file:${path}`];

/**
 * Runs ffmpeg or ffprobe to its end and returns its stdout (at most 16 MB).
 * Throws MediaError: `aborted` for the signal, `timeout`, or what `classify` reads from its log.
 */
export async function run(binary: string, options: RunOptions): Promise<Buffer> {
  const { args, cwd, signal, pidDir, timeLimitMs, input, memoryBytes = defaultMemoryBytes() } = options;
  const { reads = [], writes = [], devices = false, viaSpawnServer = false } = options;
  if (signal?.aborted) {
    input?.destroy();
    throw new MediaError("aborted", "The run was called off.", true);
  }
  const grants = { reads, writes: cwd === undefined ? writes : [cwd, ...writes], devices };
  const directory = cwd ?? "/";
  // Nothing of ours (tokens, storage keys) is in the environment of a process that parses strangers' bytes.
  const env = { PATH: "/usr/bin:/bin", HOME: directory, TMPDIR: directory, LC_ALL: "C", AV_LOG_FORCE_NOCOLOR: "1" };
  const spawner = viaSpawnServer ? await spawnServer() : null;
  const confinement = { limits: { memoryBytes, timeLimitMs }, grants, cwd: directory, parent: spawner?.pid };
  const [file, ...rest] = [...(await sandboxedCommand(binary, confinement)), ...args] as [string, ...string[]];
  let child: Spawned;
  try {
    child = spawner
      ? await spawner.spawn([file, ...rest], { cwd: directory, env })
      : spawn(file, rest, { cwd: directory, stdio: [input ? "pipe" : "ignore", "pipe", "pipe"], env });
  } catch (error) {
    input?.destroy();
    throw new MediaError("encode_failed", (error as Error).message, true);
  }
  if (spawner && !input) child.stdin?.end();
  lowerPriority(child);
  // Listened to before anything else is waited for: ffprobe may be gone in a few milliseconds.
  const ended = follow(child, options);
  const record = pidDir && child.pid ? recordProcess(pidDir, child.pid).catch(() => null) : null;
  try {
    return await ended;
  } finally {
    const path = await record;
    if (path) await forgetProcess(path);
  }
}

/** The same machine answers the API meanwhile; four encoder threads per core would otherwise starve it. */
function lowerPriority(child: Spawned): void {
  try {
    if (child.pid) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // It may already have ended; its exit tells more.
  }
}

function follow(
  child: Spawned,
  { args, signal, input, timeLimitMs, stallMs, onPosition, cwd }: RunOptions,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const stdout: Buffer[] = [];
  let stdoutBytes = 0;
  let tail = "";
  let ending: MediaError | null = null;
  let killTimer: NodeJS.Timeout | undefined;
  let stallTimer: NodeJS.Timeout | undefined;
  // The tail goes to other people's screens; where this machine keeps its files is not their business.
  const files = args.filter((arg) => arg.startsWith("file:/")).map((arg) => arg.slice("file:".length));
  const logTail = () =>
    files
      .reduce((text, file) => text.replaceAll(file, basename(file)), tail)
      .replaceAll(cwd ?? "\0", ".")
      .trim();

  const end = (reason: MediaError) => {
    if (ending) return;
    ending = reason;
    child.kill("SIGTERM");
    killTimer = setTimeout(() => child.kill("SIGKILL"), KILL_AFTER_MS);
  };
  const onAbort = () => end(new MediaError("aborted", "The run was called off.", true));
  const onStall = () => end(new MediaError("timeout", "ffmpeg stopped making progress.", true, logTail()));
  const limitTimer = setTimeout(
    () =>
      end(new MediaError("timeout", `The run took longer than ${Math.round(timeLimitMs / 1000)} s.`, true, logTail())),
    timeLimitMs,
  );
  const restartStall = () => {
    clearTimeout(stallTimer);
    if (stallMs) stallTimer = setTimeout(onStall, stallMs);
  };
  const isProgress = onPosition !== undefined || stallMs !== undefined;
  const progress = isProgress
    ? readPositions((seconds) => {
        restartStall();
        onPosition?.(seconds);
      })
    : null;
  restartStall();
  signal?.addEventListener("abort", onAbort, { once: true });

  child.stdout?.on("data", (chunk: Buffer) => {
    if (progress) return progress(chunk.toString("latin1"));
    stdoutBytes += chunk.length;
    if (stdoutBytes > STDOUT_LIMIT_BYTES)
      return end(new MediaError("input_invalid", "The source describes too much.", false));
    stdout.push(chunk);
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    tail = (tail + chunk.toString("utf8")).slice(-LOG_TAIL_BYTES);
  });
  child.on("error", (error) => {
    ending ??= new MediaError("encode_failed", `${child.spawnfile} could not be started: ${error.message}`, true);
    if (child.pid === undefined) settle(null, null);
  });
  child.on("close", settle);
  if (input && child.stdin) feed(input, child.stdin);
  if (signal?.aborted) onAbort();

  function feed(from: Readable, stdin: NodeJS.WritableStream) {
    pipeline(from, stdin).catch(() => {
      // One that has seen enough closes its end, which is no fault; the other way round nothing more will come.
      if (from.errored && !isGone(from.errored))
        end(new MediaError("source_missing", `The input broke off: ${from.errored.message}`, true));
    });
  }

  function settle(code: number | null, exitSignal: string | null) {
    clearTimeout(limitTimer);
    clearTimeout(killTimer);
    clearTimeout(stallTimer);
    signal?.removeEventListener("abort", onAbort);
    if (ending) reject(ending);
    else if (code === 0) resolve(Buffer.concat(stdout));
    else reject(classify({ code, signal: exitSignal }, logTail()));
  }
  return promise;
}

const isGone = (error: Error) =>
  ["EPIPE", "ECONNRESET", "ERR_STREAM_PREMATURE_CLOSE", "ABORT_ERR"].includes(
    (error as NodeJS.ErrnoException).code ?? "",
  );

/** Parses `-progress` lines; calls back only when the position moves on. */
function readPositions(onMove: (seconds: number) => void): (text: string) => void {
  let rest = "";
  let last = -1;
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = (lines.pop() ?? "").slice(-256);
    for (const line of lines) {
      const micros = /^out_time_us=(\d+)/.exec(line)?.[1];
      if (micros === undefined || Number(micros) <= last) continue;
      last = Number(micros);
      onMove(last / 1e6);
    }
  };
}
