import { readFileSync } from "node:fs";
import { setInterval } from "#lib/base";

/**
 * `urgent`: a viewer waits for the run. `latest`: too, and no viewer waits for an earlier one of this kind any more: a worker
 * receives a second requested segment only after the request for the first one was dropped. `background`: no viewer waits
 * for it, so it is suspended while urgent ones of this process run: with a low priority alone, the many threads of an encoder
 * still take a third of the processors.
 */
export type Precedence = "urgent" | "latest" | "background";

type Run = { pid: number; precedence: Precedence; startedAt: number; suspendedMs: number; suspendedAt: number | null };

/**
 * A background run may be suspended for this long, and as long as it has been running: viewers who seek without a pause
 * take at most half of its time, so that it is not considered dead.
 */
const MAX_SUSPENDED_MS = 5_000;
/** How often the rule is applied while an urgent run is in progress: other background runs may have started meanwhile. */
const LOOK_MS = 100;

const runs = new Set<Run>();
let looking: NodeJS.Timeout | undefined;

/** Applies the rule to the program `pid` until the returned function is called, which also resumes the program. */
export function takePrecedence(pid: number, precedence: Precedence): () => void {
  if (precedence === "latest") for (const run of runs) if (run.precedence === "latest") run.precedence = "background";
  const run: Run = { pid, precedence, startedAt: performance.now(), suspendedMs: 0, suspendedAt: null };
  runs.add(run);
  if (precedence !== "background") look();
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    runs.delete(run);
    resume(run);
    if (precedence !== "background") look();
  };
}

function look(): void {
  const background = [...runs].filter((run) => run.precedence === "background");
  if (background.length === runs.size) {
    clearInterval(looking);
    looking = undefined;
    for (const run of background) resume(run);
    return;
  }
  looking ??= setInterval(look, LOOK_MS);
  looking.unref();
  const now = performance.now();
  for (const run of background) {
    const suspended = run.suspendedMs + (run.suspendedAt === null ? 0 : now - run.suspendedAt);
    const running = now - run.startedAt - suspended;
    if (suspended >= MAX_SUSPENDED_MS + running) resume(run);
    else if (run.suspendedAt === null && signalProgram(run.pid, "SIGSTOP")) run.suspendedAt = now;
  }
}

function resume(run: Run): void {
  if (run.suspendedAt === null) return;
  signalProgram(run.pid, "SIGCONT");
  run.suspendedMs += performance.now() - run.suspendedAt;
  run.suspendedAt = null;
}

/**
 * Only the last process is suspended, which is the program, and all are continued: the last one may have been one of the
 * sandbox that started the next one before the signal reached it. Returns whether it was sent.
 */
function signalProgram(pid: number, signal: "SIGSTOP" | "SIGCONT"): boolean {
  const all = processesFrom(pid);
  const sent = (signal === "SIGSTOP" ? all.slice(-1) : all).map((each) => {
    try {
      return process.kill(each, signal);
    } catch {
      // It has exited.
      return false;
    }
  });
  return sent.includes(true);
}

/**
 * `pid` and those below it, each the parent of the next: the sandbox has up to two processes above the program. The kernel
 * lists them without reading a disk; only `pid` itself where it does not.
 */
function processesFrom(pid: number): number[] {
  try {
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ");
    return child ? [pid, ...processesFrom(Number(child))] : [pid];
  } catch {
    return [pid];
  }
}
