import { spawn } from "node:child_process";
import { constants, getPriority, setPriority } from "node:os";
import { basename } from "node:path";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout } from "#lib/base";
import {
  cgroupsOf,
  closeAbandonedOutputs,
  defaultMemoryBytes,
  forgetProcess,
  recordProcess,
  removeCgroups,
  type Spawned,
  sandboxedCommand,
  spawnServer,
} from "#lib/sandbox";
import { traced } from "#lib/tracing";
import { classify, MediaError } from "./error.ts";
import { type Precedence, takePrecedence } from "./precedence.ts";
import { removeIrregular } from "./results.ts";

export type Binaries = { ffmpeg: string; ffprobe: string };

export type RunOptions = {
  args: string[];
  /**
   * Working directory of the run, which is writable: the process starts there, and HOME and TMPDIR point to it. Without
   * one it starts in `/` and has no writable directory.
   */
  cwd?: string;
  /** Absolute paths outside of `cwd` that are readable; no other file can be opened (sandbox/sandbox.ts). */
  reads?: readonly string[];
  /** Absolute paths of directories outside of `cwd` that are readable and writable. */
  writes?: readonly string[];
  /** Whether it uses the devices of a hardware encoder. */
  devices?: boolean;
  /** Environment variables in addition to those that every run has. */
  env?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
  /** Input for `pipe:0`; the process may stop reading before its end. */
  input?: Readable;
  /** Takes the output of `pipe:1`, as much as it can; the result is empty then. Its error ends the run. */
  output?: Writable;
  /** Time limit of the run; null: it may take as long as it makes progress, which `stallMs` limits. */
  timeLimitMs: number | null;
  /** Longest time without progress of the output position. Needs `-progress pipe:1` in `args`. */
  stallMs?: number;
  /** The output position in seconds, about twice a second. Needs `-progress pipe:1` in `args`. */
  onPosition?: (seconds: number) => void;
  /** Called again and again while it advances: it has written more, or its output position has moved. */
  onMove?: (() => void) | undefined;
  /** A line of the log, without paths of this machine. */
  onLog?: (line: string) => void;
  /** Memory limit; see sandbox.ts. */
  memoryBytes?: number | undefined;
  /** Use the spawn server, so that starting the program does not block the event loop. */
  viaSpawnServer?: boolean;
  /** Ends the run at once: what it has in progress is not needed. */
  killSignal?: AbortSignal | undefined;
  /** Whether a viewer waits for it, or it yields to such runs; by default neither. */
  precedence?: Precedence;
  /** Its output is needed as fast as its input comes, so it has the priority of this process. By default, runs have a lower one. */
  isRealTime?: boolean;
  /** Where the process is recorded while it runs, for the next start to find (see orphan-processes.ts). */
  pidDir?: string;
};

/** Options that all runs over one source share. */
export type SourceRun = Pick<
  RunOptions,
  "signal" | "pidDir" | "memoryBytes" | "reads" | "writes" | "onLog" | "onMove"
> & {
  cwd: string;
};

/**
 * Limits of a run over a source, whose length may be unknown or wrong: it ends after ten minutes without progress, never
 * while it makes some. Needs `-progress pipe:1`. How much it may write is limited by `-t` (arguments.ts).
 */
export const UNTIL_STALLED = { timeLimitMs: null, stallMs: 10 * 60_000 } as const;

const LOG_TAIL_BYTES = 8 * 1024;
const STDOUT_LIMIT_BYTES = 16 * 1024 * 1024;
const KILL_AFTER_MS = 2000;

/** Demuxers for common upload formats. */
export const UPLOADABLE =
  "mov,matroska,avi,mpegts,mpeg,flv,ogg,asf,wav,w64,aiff,au,caf,amr,mp3,aac,loas,flac,mxf,gif,apng,dv";

/**
 * Precedes every `-i` of an untrusted file. The protocol list alone does not stop a playlist named `.mp4` from reading
 * local files through its entries; the demuxer list does.
 */
export const UNTRUSTED_INPUT = [
  ...["-protocol_whitelist", "file,pipe"],
  ...["-format_whitelist", UPLOADABLE],
  ...["-max_streams", "64"],
];

/** Frames that cannot be decoded never fail a run: what can be decoded plays. By default, more than two thirds do. */
export const ANY_ERROR_RATE = ["-max_error_rate", "1"];

/** Arguments that name an untrusted file; `file:` prevents a name such as `http:x` or `-y` from being parsed. */
export const untrustedInput = (path: string) => [...UNTRUSTED_INPUT, "-i", `file:${path}`];

/**
 * Runs ffmpeg or ffprobe and returns its stdout (at most 16 MB). Throws MediaError: `aborted` for the signal,
 * `timeout`, or the error that `classify` derives from its log.
 */
export function run(binary: string, options: RunOptions): Promise<Buffer> {
  const name = basename(binary);
  // Not its arguments: they contain names of files, and texts of users.
  return traced(name, { attributes: { "process.executable.name": name } }, () => start(binary, options));
}

async function start(binary: string, options: RunOptions): Promise<Buffer> {
  const { args, cwd, signal, pidDir, timeLimitMs, input, memoryBytes = defaultMemoryBytes() } = options;
  const { reads = [], writes = [], devices = false, viaSpawnServer = false } = options;
  if (signal?.aborted) {
    input?.destroy();
    throw new MediaError("aborted", "The run was aborted.", true);
  }
  const grants = { reads, writes: cwd === undefined ? writes : [cwd, ...writes], devices };
  const directory = cwd ?? "/";
  // The environment of a process that parses untrusted bytes contains no tokens or storage keys.
  const env = {
    PATH: "/usr/bin:/bin",
    HOME: directory,
    TMPDIR: directory,
    LC_ALL: "C",
    AV_LOG_FORCE_NOCOLOR: "1",
    ...options.env,
  };
  const spawner = viaSpawnServer ? await spawnServer() : null;
  const limits = { memoryBytes, timeLimitMs };
  const nice = priorityOf(options);
  const confinement = { limits, grants, cwd: directory, parent: spawner?.pid, nice };
  const command = await sandboxedCommand(binary, confinement);
  const [file, ...rest] = [...command, ...args] as [string, ...string[]];
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
  lowerPriority(child, nice);
  // Listeners are attached before anything is awaited: ffprobe may exit within a few milliseconds.
  const ended = follow(child, options);
  const record = pidDir && child.pid ? recordProcess(pidDir, child.pid).catch(() => null) : null;
  try {
    const output = await ended;
    await clear(grants.writes);
    return output;
  } catch (error) {
    // Another run may read what this one left, such as one without the track that failed.
    await clear(grants.writes).catch(() => {});
    throw error;
  } finally {
    const path = await record;
    if (path) await forgetProcess(path);
    // The launcher removes them, unless it was killed.
    await removeCgroups(cgroupsOf(command));
  }
}

/** Removes what no encoder writes. Throws MediaError when there was any, because the source has taken over ffmpeg. */
async function clear(writes: readonly string[]): Promise<void> {
  for (const path of writes) {
    const name = await removeIrregular(path).catch((error: NodeJS.ErrnoException) => {
      // The job has been aborted, and its folder removed; or another run has removed its own.
      if (error.code === "ENOENT") return null;
      throw error;
    });
    if (name !== null) throw new MediaError("encode_failed", `ffmpeg left ${name}, which is not a file.`, false);
  }
}

const { PRIORITY_NORMAL, PRIORITY_BELOW_NORMAL, PRIORITY_LOW: LOWEST } = constants.priority;

function priorityOf({ precedence, isRealTime }: RunOptions): number {
  if (isRealTime) return Math.max(PRIORITY_NORMAL, getPriority());
  return precedence === "background" ? LOWEST : PRIORITY_BELOW_NORMAL;
}

/** For a system without the sandbox launcher, which sets it first of all. */
function lowerPriority(child: Spawned, nice: number): void {
  try {
    if (child.pid) setPriority(child.pid, nice);
  } catch {
    // It may already have exited; its exit status has the error.
  }
}

function follow(
  child: Spawned,
  {
    args,
    signal,
    killSignal,
    input,
    output,
    timeLimitMs,
    stallMs,
    onPosition,
    onMove,
    onLog,
    cwd,
    precedence,
  }: RunOptions,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const stdout: Buffer[] = [];
  let stdoutBytes = 0;
  let tail = "";
  let ending: MediaError | null = null;
  let killTimer: NodeJS.Timeout | undefined;
  let stallTimer: NodeJS.Timeout | undefined;
  // The tail of the log is shown to users; paths of this machine are removed.
  const files = args.filter((arg) => arg.startsWith("file:/")).map((arg) => arg.slice("file:".length));
  const withoutPaths = (log: string) =>
    files
      .reduce((text, file) => text.replaceAll(file, basename(file)), log)
      .replaceAll(cwd ?? "\0", ".")
      .trim();
  const logTail = () => withoutPaths(tail);
  let line = "";
  const giveUpPrecedence = child.pid && precedence ? takePrecedence(child.pid, precedence) : null;

  const end = (reason: MediaError) => {
    if (ending) return;
    ending = reason;
    // A suspended program does not receive it.
    giveUpPrecedence?.();
    child.kill("SIGTERM");
    // What it does not take would keep the pipe, and this run, open.
    output?.destroy();
    killTimer = setTimeout(() => child.kill("SIGKILL"), KILL_AFTER_MS);
  };
  const onAbort = () => end(new MediaError("aborted", "The run was aborted.", true));
  const onKill = () => {
    onAbort();
    child.kill("SIGKILL");
  };
  const onStall = () => end(new MediaError("timeout", "ffmpeg stopped making progress.", true, logTail()));
  const onLimit = (ms: number) =>
    end(new MediaError("timeout", `The run took longer than ${Math.round(ms / 1000)} s.`, true, logTail()));
  const limitTimer = timeLimitMs === null ? undefined : setTimeout(() => onLimit(timeLimitMs), timeLimitMs);
  const restartStall = () => {
    clearTimeout(stallTimer);
    if (stallMs) stallTimer = setTimeout(onStall, stallMs);
  };
  const isProgress = onPosition !== undefined || stallMs !== undefined;
  const progress = isProgress
    ? readPositions((seconds) => {
        restartStall();
        onMove?.();
        onPosition?.(seconds);
      })
    : null;
  restartStall();
  signal?.addEventListener("abort", onAbort, { once: true });
  killSignal?.addEventListener("abort", onKill, { once: true });

  if (output && child.stdout)
    pipeline(child.stdout, output).catch((error) =>
      end(new MediaError("encode_failed", `The output was not taken: ${error.message}`, true)),
    );
  else
    child.stdout?.on("data", (chunk: Buffer) => {
      if (progress) return progress(chunk.toString("latin1"));
      onMove?.();
      stdoutBytes += chunk.length;
      if (stdoutBytes > STDOUT_LIMIT_BYTES)
        return end(new MediaError("input_invalid", "The source has too much metadata.", false));
      stdout.push(chunk);
    });
  child.stderr?.on("data", (chunk: Buffer) => {
    const text = chunk.toString("utf8");
    tail = (tail + text).slice(-LOG_TAIL_BYTES);
    if (!onLog) return;
    // The last lines of a chunk are enough: a damaged source has thousands of them.
    const lines = (line + text).slice(-LOG_TAIL_BYTES).split("\n");
    line = lines.pop() ?? "";
    for (const complete of lines) if (complete.trim() !== "") onLog(withoutPaths(complete));
  });
  child.on("error", (error) => {
    ending ??= new MediaError("encode_failed", `${child.spawnfile} could not be started: ${error.message}`, true);
    if (child.pid === undefined) settle(null, null);
  });
  child.once("exit", () => closeAbandonedOutputs(child));
  child.on("close", settle);
  if (input && child.stdin) feed(input, child.stdin);
  if (signal?.aborted) onAbort();
  if (killSignal?.aborted) onKill();

  function feed(from: Readable, stdin: NodeJS.WritableStream) {
    pipeline(from, stdin).catch(() => {
      // A program that has read enough closes its input, which is not an error; an error of the source is.
      if (from.errored && !isGone(from.errored))
        end(new MediaError("source_missing", `The input ended early: ${from.errored.message}`, true));
    });
  }

  function settle(code: number | null, exitSignal: string | null) {
    clearTimeout(limitTimer);
    clearTimeout(killTimer);
    clearTimeout(stallTimer);
    giveUpPrecedence?.();
    signal?.removeEventListener("abort", onAbort);
    killSignal?.removeEventListener("abort", onKill);
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

/** Parses `-progress` lines; calls back only when the position advances. */
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
