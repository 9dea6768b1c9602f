import type { App } from "#app.ts";
import { ChildSupervisor, spawnSelf } from "#lib/executable";
import { envName, SETTINGS, type SettingName } from "#platform/config/settings.ts";

export type LocalWorkers = { stop(): Promise<void> };

/** Runs `count` worker processes of this program: restarts those that exit, and stops them with the server. */
export function startLocalWorkers(app: App, { count, address }: { count: number; address: string }): LocalWorkers {
  const workers = new ChildSupervisor({
    firstWaitMs: 500,
    spawn() {
      const child = spawnSelf(["worker", "--server", address, "--local"], {
        // stdin stays open as long as the server runs: its end notifies the worker even after kill -9. A line on it is
        // a new token.
        stdio: ["pipe", "inherit", "inherit"],
        // The token is passed in the environment, because arguments are visible to all users of the machine.
        env: {
          // Job contracts may contain URLs of this server's HTTPS, whose certificate only the server knows.
          ...(app.config.tls_cert && { NODE_EXTRA_CA_CERTS: app.config.tls_cert }),
          ...process.env,
          VODBOX_WORKER_TOKEN: app.secrets.worker_token,
          ...settings(app),
        },
      });
      child.stdin?.on("error", () => {});
      return child;
    },
    onError: (_, error) => app.log.error({ err: error }, "a local worker could not be started"),
    onExit: () => true,
    onRestart: (_, exit, waitMs) => app.log.warn({ ...exit, again_in_ms: waitMs }, "a local worker exited"),
  });
  for (let index = 0; index < count; index++) workers.start(index);

  // With the old token they could not even release their job.
  app.signals.on("secret.rotated", (name) => {
    if (name === "worker_token")
      for (const child of workers.children) child.stdin?.write(`${app.secrets.worker_token}\n`);
  });

  return workers;
}

/** The settings of the server that also apply to a worker. */
const settings = ({ config }: App) => ({
  VODBOX_DATA_DIR: config.data_dir,
  VODBOX_LOG_LEVEL: config.log_level,
  VODBOX_MIN_FREE_BYTES: String(config.min_free_bytes),
  ...(config.log_format && { VODBOX_LOG_FORMAT: config.log_format }),
  ...(config.ffmpeg && { VODBOX_FFMPEG: config.ffmpeg }),
  VODBOX_ENCODER: config.encoder,
  VODBOX_LIVE_ENCODES: String(config.live_encodes),
  ...(config.ffmpeg_memory_bytes && { VODBOX_FFMPEG_MEMORY_BYTES: String(config.ffmpeg_memory_bytes) }),
  ...(config.ffprobe && { VODBOX_FFPROBE: config.ffprobe }),
  ...Object.fromEntries(
    TRANSCRIPTION.filter((name) => config[name] !== undefined).map((name) => [envName(name), String(config[name])]),
  ),
});

/** By name, so that those of a new transcription service reach the worker. */
const TRANSCRIPTION = (Object.keys(SETTINGS) as SettingName[]).filter((name) =>
  /^(transcribe|whisper)(_|$)/.test(name),
);
