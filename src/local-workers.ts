import { type ChildProcess, spawn } from "node:child_process";
import { isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import type { App } from "./app.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** A worker that ran this long has not been failing at its start. */
const SETTLED_MS = 60_000;

export type LocalWorkers = { stop(): Promise<void> };

/** `count` worker processes of this same program, started again when they die, ended when the server does. */
export function startLocalWorkers(app: App, { count, address }: { count: number; address: string }): LocalWorkers {
  const live = new Map<number, ChildProcess>();
  const timers = new Set<NodeJS.Timeout>();
  let stopping = false;

  const start = (index: number, waitMs = FIRST_WAIT_MS): void => {
    if (stopping) return;
    const startedAt = Date.now();
    const program = isSea() ? [] : [fileURLToPath(new URL("../cli/main.ts", import.meta.url))];
    const child = spawn(process.execPath, [...program, "worker", "--server", address, "--local"], {
      // stdin stays open as long as the server lives: its end tells the worker that the server is gone, even by kill -9.
      // A line on it is a new token.
      stdio: ["pipe", "inherit", "inherit"],
      // The token goes by the environment: arguments are seen by everyone on the machine.
      env: {
        // Addresses in a contract may be of our own HTTPS, whose certificate only we know.
        ...(app.config.tls_cert && { NODE_EXTRA_CA_CERTS: app.config.tls_cert }),
        ...process.env,
        VODBOX_WORKER_TOKEN: app.secrets.worker_token,
        ...settings(app),
      },
    });
    live.set(index, child);
    child.stdin?.on("error", () => {});
    child.on("error", (error) => app.log.error({ err: error }, "a local worker could not be started"));
    child.on("close", (code, signal) => {
      live.delete(index);
      if (stopping) return;
      const wait = Date.now() - startedAt > SETTLED_MS ? FIRST_WAIT_MS : waitMs;
      app.log.warn({ code, signal, again_in_ms: wait }, "a local worker ended");
      const timer = setTimeout(() => {
        timers.delete(timer);
        start(index, Math.min(wait * 2, LONGEST_WAIT_MS));
      }, wait);
      timers.add(timer);
    });
  };
  for (let index = 0; index < count; index++) start(index);

  // With the old one they could not even give back the job that they are at.
  app.signals.on("secret.rotated", (name) => {
    if (name === "worker_token") for (const child of live.values()) child.stdin?.write(`${app.secrets.worker_token}\n`);
  });

  return {
    async stop() {
      stopping = true;
      for (const timer of timers) clearTimeout(timer);
      const ended = [...live.values()].map(
        (child) => new Promise<void>((resolve) => child.once("close", () => resolve())),
      );
      for (const child of live.values()) child.kill("SIGTERM");
      await Promise.all(ended);
    },
  };
}

/** Those settings of ours that a worker has, too, wherever they came from. */
const settings = ({ config }: App) => ({
  VODBOX_DATA_DIR: config.data_dir,
  VODBOX_LOG_LEVEL: config.log_level,
  VODBOX_MIN_FREE_BYTES: String(config.min_free_bytes),
  ...(config.log_format && { VODBOX_LOG_FORMAT: config.log_format }),
  ...(config.ffmpeg && { VODBOX_FFMPEG: config.ffmpeg }),
  VODBOX_ENCODER: config.encoder,
  ...(config.ffmpeg_memory_bytes && { VODBOX_FFMPEG_MEMORY_BYTES: String(config.ffmpeg_memory_bytes) }),
  ...(config.ffprobe && { VODBOX_FFPROBE: config.ffprobe }),
  VODBOX_TRANSCRIBE: config.transcribe,
  VODBOX_TRANSCRIBE_MODEL: config.transcribe_model,
  VODBOX_TRANSCRIBE_TIMEOUT_SECONDS: String(config.transcribe_timeout_seconds),
  ...(config.transcribe_url && { VODBOX_TRANSCRIBE_URL: config.transcribe_url }),
  ...(config.transcribe_key && { VODBOX_TRANSCRIBE_KEY: config.transcribe_key }),
  ...(config.transcribe_command && { VODBOX_TRANSCRIBE_COMMAND: config.transcribe_command }),
});
