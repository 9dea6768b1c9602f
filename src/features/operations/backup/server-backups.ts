import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type App, forApp, lockNamespace } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { spawnSelf } from "#lib/executable";
import { envName, type SettingName } from "#platform/config/settings.ts";

/** Bytes of the command's output that are kept. */
const MAX_OUTPUT = 10_000;
/** What a run posts to the other processes. */
const POSTED = "backup";
const NAME = /^vodbox-\d{8}T\d{6}Z\.tar\.zst$/;
/** What `writeBackup` adds to the name until the archive is complete. */
const PARTIAL = ".partial";

export type BackupRun = {
  name: string;
  status: "running" | "done" | "failed";
  error: string | null;
  startedAt: number;
  finishedAt: number | null;
};
export type BackupFile = { name: string; bytes: number; createdAt: number };

const folderOf = ({ config }: App) => join(config.data_dir, "backups");
const runs = forApp((): { last: BackupRun | null } => ({ last: null }));

/** The run in progress, else the last one since the start, in whichever process of the server. */
export async function lastRun(app: App): Promise<BackupRun | null> {
  const { last } = runs(app);
  if (last?.status === "running") return last;
  const elsewhere = (await app.peers?.posted(POSTED)) as BackupRun | undefined;
  return elsewhere && (last === null || elsewhere.startedAt > last.startedAt) ? elsewhere : last;
}

/** Bytes that the run in progress has written. */
export const writtenBytes = (app: App, { name }: BackupRun): Promise<number> =>
  stat(join(folderOf(app), `${name}${PARTIAL}`)).then(
    ({ size }) => size,
    () => 0,
  );

/** Complete archives in the data directory, newest first. */
export async function serverBackups(app: App): Promise<BackupFile[]> {
  const names = await readdir(folderOf(app)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  });
  const found = names.filter((name) => NAME.test(name)).sort();
  return Promise.all(
    found.reverse().map(async (name) => {
      const { size, mtimeMs } = await stat(join(folderOf(app), name));
      return { name, bytes: size, createdAt: Math.round(mtimeMs) };
    }),
  );
}

/** The path of a complete archive. Throws 404. */
export async function backupPath(app: App, name: string): Promise<{ path: string; bytes: number }> {
  if (!NAME.test(name)) notFound("backup");
  const path = join(folderOf(app), name);
  const info = await stat(path).catch(() => null);
  return info ? { path, bytes: info.size } : notFound("backup");
}

const starts = lockNamespace<"start">("backup");

/** Starts a backup into the data directory. Throws 409 while one runs. */
export const startBackup = (app: App, { objects }: { objects: boolean }): Promise<BackupRun> =>
  starts(app).withLock("start", () => begin(app, objects));

async function begin(app: App, objects: boolean): Promise<BackupRun> {
  const before = await lastRun(app);
  if (before?.status === "running")
    throw new HttpError(409, "backup_running", `The backup ${before.name} is running; wait until it is complete.`);
  const startedAt = app.clock.now();
  const stamp = new Date(startedAt).toISOString().replace(/[-:]|\.\d+/g, "");
  const run: BackupRun = {
    name: `vodbox-${stamp}.tar.zst`,
    status: "running",
    error: null,
    startedAt,
    finishedAt: null,
  };
  runs(app).last = run;
  await app.peers?.post(POSTED, run);
  void execute(app, run, objects);
  return run;
}

async function execute(app: App, run: BackupRun, objects: boolean): Promise<void> {
  try {
    await mkdir(folderOf(app), { recursive: true, mode: 0o700 });
    await removeInterrupted(app);
    await backUp(app, join(folderOf(app), run.name), objects);
    run.status = "done";
  } catch (error) {
    run.status = "failed";
    run.error = (error as Error).message;
    app.log.error({ err: error }, "a backup failed");
  }
  run.finishedAt = app.clock.now();
  await app.peers?.post(POSTED, run);
}

/** What backups have left behind that were killed. */
async function removeInterrupted(app: App): Promise<void> {
  for (const name of await readdir(folderOf(app)))
    if (name.startsWith("vodbox-") && name.includes(PARTIAL)) await rm(join(folderOf(app), name), { force: true });
}

/** Runs `vodbox admin backup`: copying the database would block this process. Rejects with the command's error. */
function backUp(app: App, file: string, objects: boolean): Promise<void> {
  const { config } = app;
  const args = ["admin", "backup", file, "--data", config.data_dir, "--json", ...(objects ? ["--objects"] : [])];
  const env = { ...process.env, ...environmentOf(app) };
  const child = spawnSelf(args, { env, stdio: ["ignore", "ignore", "pipe"] });
  const stop = () => child.kill("SIGTERM");
  app.stopping.addEventListener("abort", stop, { once: true });
  let output = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-MAX_OUTPUT);
  });
  return new Promise<void>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(messageIn(output)))));
  }).finally(() => app.stopping.removeEventListener("abort", stop));
}

/** The settings that the server was given as flags, and its own tokens, in the environment of the command. */
function environmentOf({ config, secrets }: App): Record<string, string> {
  const names = Object.keys(config.origins) as SettingName[];
  const given = names.filter(
    (name) => config.origins[name] === "flag" && /^(string|number)$/.test(typeof config[name]),
  );
  return {
    ...Object.fromEntries(given.map((name) => [envName(name), String(config[name])])),
    ...(config.file !== null && { VODBOX_CONFIG: config.file }),
    [envName("admin_token")]: secrets.admin_token,
    [envName("log_level")]: "error",
  };
}

/** The last line that is JSON with an error, as `--json` writes it. */
function messageIn(output: string): string {
  for (const line of output.trim().split("\n").reverse()) {
    try {
      const message = (JSON.parse(line) as { error?: { message?: string } }).error?.message;
      if (message) return message;
    } catch {
      // Progress and log lines.
    }
  }
  return "The backup was interrupted.";
}
