import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { sql } from "drizzle-orm";
import type { Logger } from "pino";
import { sleep } from "#lib/base";
import { databaseFile } from "#storage/db/open.ts";
import type { Running } from "./serve.ts";

const ASK_AGAIN_MS = 250;
/** Each failure is logged. */
const ASK_SELDOM_MS = 8000;
/** systemd-notify itself waits at most 5 s for the manager to read its message. */
const SENT_WITHIN_MS = 6000;

export type Signs = {
  /** The text in `systemctl status`. */
  status: string;
  /** Whether requests are answered. */
  isReady(): Promise<boolean>;
  /** Throws, or never settles, when a restart may help. */
  requireAlive(): Promise<void>;
};

export type ServiceNotices = {
  /** Sends READY=1 once it is ready, then WATCHDOG=1 twice in each WATCHDOG_USEC while it is alive. */
  serving(signs: Signs): void;
  /** Sends STOPPING=1 as the last message. Resolves when it is sent, within 6 s. */
  stopping(): Promise<void>;
};

/**
 * Notifies the service manager: sd_notify(3), sd_watchdog_enabled(3). Does nothing when NOTIFY_SOCKET is not set. Its
 * variables are removed from `env`, so that no child process can send notifications. Node.js has no AF_UNIX datagram
 * sockets. systemd-notify is present wherever systemd is, supports abstract addresses, and waits until its message was
 * read, which is why the unit has NotifyAccess=all. Each message repeats the whole state: systemd before 246
 * occasionally lost one, and the next one has the same information.
 */
export function serviceNotices(env: NodeJS.ProcessEnv, log: Logger): ServiceNotices {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: usec, WATCHDOG_PID: pid } = env;
  for (const name of ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]) delete env[name];
  if (!socket) return { serving() {}, stopping: async () => {} };
  const watchdogMs = pid === undefined || Number(pid) === process.pid ? Number(usec ?? 0) / 1000 : 0;
  const over = new AbortController();
  const notify = messenger(socket);
  let failed = false;
  const send = async (...assignments: string[]) => {
    const fault = await notify([`MAINPID=${process.pid}`, ...assignments]);
    if (fault && !failed) log.warn({ fault }, "the service manager cannot be notified");
    failed = fault !== null;
  };
  void send("STATUS=Opening the database; it is migrated first where it is older");

  const watch = async ({ status, isReady, requireAlive }: Signs) => {
    for (let waitMs = ASK_AGAIN_MS; !(await isReady()); waitMs = Math.min(waitMs * 2, ASK_SELDOM_MS)) {
      if (waitMs === ASK_AGAIN_MS) void send("STATUS=Waiting for the database and storage to respond");
      await sleep(waitMs, undefined, { signal: over.signal });
    }
    const state = ["READY=1", `STATUS=${status}`];
    over.signal.throwIfAborted();
    await send(...state);
    if (!(watchdogMs > 0)) return;
    for (let due = performance.now(); ; due = Math.max(due, performance.now())) {
      due += watchdogMs / 2;
      await sleep(Math.max(0, due - performance.now()), undefined, { signal: over.signal });
      const error = await requireAlive().then(
        () => null,
        (thrown) => thrown,
      );
      over.signal.throwIfAborted();
      if (error === null) await send(...state, "WATCHDOG=1");
      else
        log.error(
          { err: error },
          "the database is not responding; if this continues, the service manager restarts vodbox",
        );
    }
  };
  return {
    serving(signs) {
      watch(signs).catch((error) => {
        if (!over.signal.aborted) log.error({ err: error }, "the service manager can no longer be notified");
      });
    },
    stopping() {
      over.abort();
      const sent = send("STOPPING=1", "STATUS=Stopping: releasing jobs and completing requests");
      return Promise.race([sent, sleep(SENT_WITHIN_MS)]);
    },
  };
}

/** The server's state for the service manager. */
export function signsOf({ baseUrl, opened: { app, server } }: Running): Signs {
  const { database_url } = app.config;
  const isRemote = database_url !== undefined && databaseFile(database_url) === null;
  return {
    status: `Serving ${baseUrl}`,
    isReady: async () => (await server.fetch(new Request(new URL("/readyz", baseUrl)))).ok,
    async requireAlive() {
      try {
        await app.db.get(sql`select count(*) from _migrations`);
      } catch (error) {
        // A restart does not help when a remote database is unavailable, and requests that do not need it are served.
        if (!isRemote) throw error;
      }
    },
  };
}

/**
 * One message per line, its assignments separated by tabs; the answer is a line with the exit status of systemd-notify.
 */
const LOOP = "IFS='\t'; set -f; while IFS= read -r message; do systemd-notify $message; echo $?; done";

/**
 * One shell for the lifetime of this process, which starts systemd-notify for each message: starting a program from
 * here blocked the event loop for 40 ms and more on a busy machine. Returns null when the message was sent, else the
 * reason.
 */
function messenger(socket: string): (assignments: string[]) => Promise<string | null> {
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", NOTIFY_SOCKET: socket };
  const shell = spawn("/bin/sh", ["-c", LOOP], { env, stdio: "pipe" });
  const waiting: ((fault: string | null) => void)[] = [];
  let said = "";
  let failure: string | null = null;
  const end = (why: string) => {
    failure ??= why;
    for (const resolve of waiting.splice(0)) resolve(failure);
  };
  shell.stderr.on("data", (chunk) => {
    said = (said + chunk).slice(-500);
  });
  createInterface({ input: shell.stdout }).on("line", (code) => {
    waiting.shift()?.(code === "0" ? null : said.trim() || `systemd-notify exited with ${code}`);
    said = "";
  });
  shell.stdin.on("error", () => {});
  shell.once("error", (error) => end(error.message));
  shell.once("close", () => end("the shell that runs systemd-notify exited"));
  // Does not delay the exit: the shell ends at the end of its input.
  for (const handle of [shell, shell.stdin, shell.stdout, shell.stderr]) (handle as unknown as Socket).unref();
  return (assignments) =>
    new Promise((resolve) => {
      if (failure !== null) return resolve(failure);
      waiting.push(resolve);
      shell.stdin.write(`${assignments.join("\t")}\n`);
    });
}
