import { constants, type Stats } from "node:fs";
import { access, chmod, chown, lstat, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { App } from "#app.ts";
import { binariesAside, cacheDir } from "#lib/executable";
import { databaseFileOf } from "#platform/config/database-file.ts";
import { storeDriver } from "#platform/config/stores.ts";

/** Bits that must not be set, and bits that must be set. */
type Rule = {
  path: string;
  never: number;
  always: number;
  /** Bits of `never` that are only a warning while all files in the directory are closed. */
  tolerated?: number;
  /** The directory contains files that others may read, so it must be closed when the data directory is open. */
  holdsOpenFiles?: boolean;
};
const folder = (path: string): Rule => ({ path, never: 0o077, always: 0o700, tolerated: 0o055 });
const secret = (path: string): Rule => ({ path, never: 0o077, always: 0o600 });
/** In a directory that is closed to others. */
const own = (path: string): Rule => ({ path, never: 0o022, always: 0o600 });
const ownFolder = (path: string): Rule => ({ path, never: 0o022, always: 0o700 });
const openFiles = (path: string): Rule => ({ ...ownFolder(path), holdsOpenFiles: true });

/**
 * Checks owners and modes of all files that vodbox keeps. All must belong to the owner of the data directory, who must
 * be the user of this process. With `fix` modes are corrected where allowed, and owners too when run by root.
 * Directories that others may only list are a warning while all files in them are closed. Throws Error for remaining
 * faults.
 */
export async function examinePermissions(app: App, { fix }: { fix: boolean }) {
  const { data_dir } = app.config;
  const { uid, mode: dataMode } = await lstat(data_dir);
  const me = process.geteuid?.() ?? uid;
  const owners: Owners = { uid, me, isOpen: (dataMode & 0o055) !== 0, fix };
  const warnings: string[] = [];
  const faults: string[] = [];
  let fixed = 0;
  let checkedFiles = 0;
  if (me !== uid)
    faults.push(
      `${data_dir} belongs to user ${uid}, but this runs as user ${me} and would create files that the owner cannot change; run vodbox as the owner, for example with sudo -u '#${uid}'`,
    );
  for (const rule of await rulesOf(app)) {
    const info = await lstat(rule.path).catch(() => null);
    // A symlink is the operator's decision.
    if (info === null || info.isSymbolicLink()) continue;
    checkedFiles++;
    const results = [await examineOwner(rule, info, owners), await examineMode(rule, info, owners)];
    fixed += results.filter((result) => result === "fixed").length;
    const left = results.filter((result) => typeof result === "object");
    const wrong = left.flatMap(({ fault }) => fault ?? []);
    warnings.push(...left.flatMap(({ warning }) => (warning === undefined ? [] : [`${rule.path} ${warning}`])));
    if (wrong.length > 0) faults.push(`${rule.path} ${wrong.join(", and ")}`);
  }
  if (faults.length > 0) throw new Error([...faults, ...warnings].join("; "));
  if (warnings.length > 0) {
    const detail = `other users can list directories, but not read the files in them: ${warnings.join("; ")}`;
    return { detail, fixed, warning: true as const };
  }
  const detail = `${checkedFiles} files and directories belong to user ${uid} and are not accessible to others`;
  return { detail: fixed > 0 ? `${detail}; ${fixed} were fixed` : detail, fixed };
}

/** `uid`: the owner of the data directory; `me`: the user of this process; `isOpen`: others may enter the directory. */
type Owners = { uid: number; me: number; isOpen: boolean; fix: boolean };
type Examined = "right" | "fixed" | { fault?: string; warning?: string };

async function examineOwner({ path }: Rule, info: Stats, { uid, me, fix }: Owners): Promise<Examined> {
  if (info.uid === uid) return "right";
  if (!fix || me !== 0)
    return { fault: `belongs to user ${info.uid} instead of ${uid}; as root: chown ${uid} ${path}` };
  await chown(path, uid, info.gid);
  return "fixed";
}

async function examineMode(rule: Rule, info: Stats, { me, isOpen, fix }: Owners): Promise<Examined> {
  const mode = info.mode & 0o7777;
  const never = isOpen && rule.holdsOpenFiles ? 0o077 : rule.never;
  const right = (mode & ~never) | rule.always;
  if (mode === right) return "right";
  if (fix && (me === 0 || me === info.uid)) {
    await chmod(rule.path, right);
    return "fixed";
  }
  const user = info.uid === me ? "" : ` as user ${info.uid} or root:`;
  const advice = `has mode ${octal(mode)};${user} chmod ${octal(right)} ${rule.path}, or doctor --fix`;
  const isTolerated = ((mode ^ right) & ~(rule.tolerated ?? 0)) === 0;
  return isTolerated ? { warning: advice } : { fault: advice };
}

const octal = (mode: number) => mode.toString(8).padStart(4, "0");

/** Existing files of a fixed set: for objects, of which there may be millions, only the top level. */
async function rulesOf({ config, objects }: App): Promise<Rule[]> {
  const at = (...names: string[]) => join(config.data_dir, ...names);
  const names = async (path: string) => (await readdir(path).catch(() => [])).map((name) => join(path, name));
  const database = databaseFileOf(config);
  // With -wal and -shm, and the copies made before migrations.
  const databases =
    database === null
      ? []
      : (await names(dirname(database))).filter((path) => isOf(basename(database), basename(path)));
  const tools = await binariesAside({ ffmpeg: config.ffmpeg, ffprobe: config.ffprobe, cacheDir: cacheDir() }).catch(
    () => null,
  );
  const bundled = tools?.origin === "bundled" ? [tools.ffmpeg, tools.ffprobe] : [];
  return [
    folder(config.data_dir),
    folder(at("secrets")),
    ...(await names(at("secrets"))).map(secret),
    ...["local-proof", "server.json"].map((name) => secret(at(name))),
    ...databases.map(secret),
    ...["server.lock", "server.pid"].map((name) => own(at(name))),
    // With storage disabled, those that local storage left.
    openFiles(at(storeDriver(objects?.kind ?? "local").folder)),
    ...["scratch", "pictures"].map((name) => openFiles(at(name))),
    ownFolder(cacheDir()),
    ...(await notExecutable(bundled)),
  ];
}

const isOf = (database: string, name: string) =>
  name.startsWith(database) && /^(-wal|-shm|-journal|\.before-.+)?$/.test(name.slice(database.length));

async function notExecutable(paths: readonly string[]): Promise<Rule[]> {
  const infos = await Promise.all(
    paths.map((path) =>
      access(path, constants.X_OK).then(
        () => [],
        () => [{ path, never: 0o022, always: 0o500 }],
      ),
    ),
  );
  return infos.flat();
}
