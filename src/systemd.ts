import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "drizzle-orm";
import type { Logger } from "pino";
import { databaseFile } from "../storage/db/open.ts";
import type { Running } from "./serve.ts";

const ASK_AGAIN_MS = 250;
/** Each answer that is no is in the log. */
const ASK_SELDOM_MS = 8000;
/** systemd-notify itself waits at most 5 s for the manager to have read what it sent. */
const SENT_WITHIN_MS = 6000;

export type Signs = {
  /** What `systemctl status` shows. */
  status: string;
  /** Whether requests are answered. */
  isReady(): Promise<boolean>;
  /** Throws, or never settles, where a restart may mend it. */
  requireAlive(): Promise<void>;
};

export type ServiceNotices = {
  /** READY=1 once it is ready, then WATCHDOG=1 twice in each WATCHDOG_USEC for as long as it is alive. */
  serving(signs: Signs): void;
  /** STOPPING=1; nothing is sent after it. Resolves when it is sent, within 6 s. */
  stopping(): Promise<void>;
};

/**
 * Tells the service manager that started this process how it is: sd_notify(3), sd_watchdog_enabled(3). Does nothing where
 * NOTIFY_SOCKET is not set. What concerns it is taken out of `env`, so that nobody started from here speaks for us.
 *
 * Node.js has no datagram sockets of AF_UNIX. systemd-notify is wherever systemd is, knows abstract addresses, and waits
 * until its message was read, which is why the unit says NotifyAccess=all. Each message repeats all that holds: with a
 * systemd before 246, which lost one now and then, the next one tells the same.
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
    if (fault && !failed) log.warn({ fault }, "the service manager cannot be told how this server is");
    failed = fault !== null;
  };
  void send("STATUS=Opening the database; it is migrated first where it is older");

  const watch = async ({ status, isReady, requireAlive }: Signs) => {
    for (let waitMs = ASK_AGAIN_MS; !(await isReady()); waitMs = Math.min(waitMs * 2, ASK_SELDOM_MS)) {
      if (waitMs === ASK_AGAIN_MS) void send("STATUS=Waiting for the database and storage to answer");
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
        log.error({ err: error }, "the database does not answer; unless it does, the service manager restarts vodbox");
    }
  };
  return {
    serving(signs) {
      watch(signs).catch((error) => {
        if (!over.signal.aborted)
          log.error({ err: error }, "the service manager is not told any more how this server is");
      });
    },
    stopping() {
      over.abort();
      const sent = send("STOPPING=1", "STATUS=Stopping: jobs are given back and requests answered");
      return Promise.race([sent, sleep(SENT_WITHIN_MS)]);
    },
  };
}

/** What the service manager wants to know of a server that listens. */
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
        // A remote database that is away is not brought back by a restart, and what needs none is served meanwhile.
        if (!isRemote) throw error;
      }
    },
  };
}

/** A message a line, its assignments parted by tabs; answered by a line with how systemd-notify ended. */
const LOOP = "IFS='\t'; set -f; while IFS= read -r message; do systemd-notify $message; echo $?; done";

/**
 * One shell that lives as long as this process and starts systemd-notify for each message: starting a program from here
 * held up the event loop for 40 ms and more on a busy machine. Gives null for what was sent, else why it was not.
 */
function messenger(socket: string): (assignments: string[]) => Promise<string | null> {
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", NOTIFY_SOCKET: socket };
  const shell = spawn("/bin/sh", ["-c", LOOP], { env, stdio: "pipe" });
  const waiting: ((fault: string | null) => void)[] = [];
  let said = "";
  let gone: string | null = null;
  const end = (why: string) => {
    gone ??= why;
    for (const resolve of waiting.splice(0)) resolve(gone);
  };
  shell.stderr.on("data", (chunk) => {
    said = (said + chunk).slice(-500);
  });
  createInterface({ input: shell.stdout }).on("line", (code) => {
    waiting.shift()?.(code === "0" ? null : said.trim() || `systemd-notify ended with ${code}`);
    said = "";
  });
  shell.stdin.on("error", () => {});
  shell.once("error", (error) => end(error.message));
  shell.once("close", () => end("the shell that runs systemd-notify ended"));
  // Nobody's end waits for it: it sees that this process is gone by the end of its input.
  for (const handle of [shell, shell.stdin, shell.stdout, shell.stderr]) (handle as unknown as Socket).unref();
  return (assignments) =>
    new Promise((resolve) => {
      if (gone !== null) return resolve(gone);
      waiting.push(resolve);
      shell.stdin.write(`${assignments.join("\t")}\n`);
    });
}
