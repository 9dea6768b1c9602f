import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { sandboxLauncher } from "#lib/executable";
import { type CgroupFolder, cgroupOptions, findCgroupFolders, limitsByCgroup } from "./cgroups.ts";
import { ENCODER_DEVICES, ENCODER_PATHS, isStatic, SYSTEM_PATHS } from "./program.ts";
import { SpawnServer } from "./spawn-server.ts";

/**
 * Hides the file system from a program: - `launcher`: the program of launcher.c, by namespaces, or by Landlock where
 * user namespaces are not allowed; - `bwrap`: bubblewrap, where the launcher is missing or the kernel allows namespaces
 * only to set-user-ID programs; it starts the launcher, if there is one, for its filter of system calls.
 */
type Isolation =
  | { kind: "launcher"; path: string; mode: "namespaces" | "landlock"; landlockAbi: number }
  | { kind: "bwrap"; path: string; launcher?: string };

/**
 * What this system offers to confine a program, in addition to an ffmpeg that is built without network and playlists.
 * Each part is tested once: BusyBox, containers and hardened units have some of them and not others. Without isolation,
 * util-linux programs change the process and then execute ffmpeg.
 */
export type Sandbox = {
  isolation: Isolation | null;
  /** util-linux: no network interface except a loopback that is down. */
  network: string[];
  /** util-linux: the process is killed with its parent, even by SIGKILL; the parent's pid is appended. */
  parentDeath: string[];
  prlimit: string | null;
  /** Where the launcher creates a control group for each run; none where the system leaves none to this process. */
  cgroups: readonly CgroupFolder[];
};

const GIB = 2 ** 30;
/** Eight renditions of 2160p60 take about 4 GB. */
const MAX_MEMORY = 8 * GIB;
/**
 * Three quarters of the machine, so that a server on the same machine keeps running.
 * @example
 * defaultMemoryBytes() <= 8 * 2 ** 30 // => true
 */
export const defaultMemoryBytes = () => Math.min(MAX_MEMORY, Math.floor((totalmem() * 3) / 4));
/** One segment or image; the whole output is bounded by the plan's bitrates and duration. */
const MAX_FILE_BYTES = 4 * GIB;
const MAX_OPEN_FILES = 1024;
/** Encoders start about one for each processor, and there are up to eight renditions with their filters in a run. */
const MAX_THREADS = 512 + 32 * availableParallelism();
/** What a control group counts in addition to private memory: page tables, stacks, buffers of the kernel. */
const KERNEL_MEMORY_BYTES = 64 * 2 ** 20;

/** Only the launcher counts them. */
const THREADS = ["--threads", String(MAX_THREADS)];

const SAME_PARENT = '[ "$PPID" = "$0" ] && exec "$@"';
const FOLDERS = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

let detected: Promise<Sandbox> | undefined;
let spawning: Promise<SpawnServer | null> | undefined;

/** What this system offers; detected once. */
export function sandbox(): Promise<Sandbox> {
  detected ??= findSandbox(sandboxLauncher());
  return detected;
}

/** The spawn server of this process, started on first use; null if no launcher works. */
export async function spawnServer(): Promise<SpawnServer | null> {
  spawning ??= startSpawnServer();
  const server = await spawning;
  if (server?.isRunning ?? true) return server;
  spawning = startSpawnServer();
  return spawning;
}

async function startSpawnServer(): Promise<SpawnServer | null> {
  const { isolation } = await sandbox();
  return isolation?.kind === "launcher" ? SpawnServer.start(isolation.path).catch(() => null) : null;
}

/** The same with the launcher at `launcher`, or without one. */
export async function findSandbox(launcher: string | null): Promise<Sandbox> {
  const [isolation, parentDeath, network, prlimit] = await Promise.all([
    findIsolation(launcher),
    first([["setpriv", "--pdeathsig", "KILL"]]),
    // With privileges, else in a user namespace, in which the process keeps its user.
    first([
      ["unshare", "--net"],
      ["unshare", "--user", "--map-current-user", "--net"],
      ["unshare", "--map-root-user", "--net"],
    ]),
    first([["prlimit", "--core=0"]]),
  ]);
  return {
    isolation,
    // A parent that exits before the signal is requested is never reported, so the shell compares the pid.
    parentDeath: parentDeath.length > 0 ? [...parentDeath, "/bin/sh", "-c", SAME_PARENT] : [],
    network,
    prlimit: prlimit[0] ?? null,
    cgroups: await cgroupsWith(isolation),
  };
}

async function cgroupsWith(isolation: Isolation | null): Promise<CgroupFolder[]> {
  const launcher = isolation?.kind === "launcher" ? isolation.path : isolation?.launcher;
  return launcher === undefined ? [] : findCgroupFolders({ launcher });
}

async function findIsolation(path: string | null): Promise<Isolation | null> {
  const modes = path
    ? await run(path, ["--check"]).then(
        ({ stdout }) => stdout.split("\n"),
        () => [],
      )
    : [];
  const landlockAbi = Number(modes.find((line) => line.startsWith("landlock "))?.slice("landlock ".length) ?? 0);
  if (path && modes.includes("namespaces")) return { kind: "launcher", path, mode: "namespaces", landlockAbi };
  const [bwrap] = await first([["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"]]);
  if (bwrap) return { kind: "bwrap", path: bwrap, ...(path && landlockAbi > 0 && { launcher: path }) };
  return path && landlockAbi > 0 ? { kind: "launcher", path, mode: "landlock", landlockAbi } : null;
}

const run = (path: string, args: string[]) => promisify(execFile)(path, args, { timeout: 5000 });

/** The launcher does not search PATH. A program that is not found fails at its start. */
async function located(name: string): Promise<string> {
  if (name.includes("/")) return resolve(name);
  for (const folder of FOLDERS) {
    const path = join(folder, name);
    if (await isExecutable(path)) return path;
  }
  return join(FOLDERS[0] as string, name);
}

const isExecutable = (path: string) =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

async function first(commands: [string, ...string[]][]): Promise<string[]> {
  for (const [name, ...options] of commands) {
    for (const folder of FOLDERS) {
      const path = join(folder, name);
      try {
        await access(path, constants.X_OK);
        await run(path, [...options, "/bin/true"]);
        return [path, ...options];
      } catch {}
    }
  }
  return [];
}

export type Limits = {
  /** Private writable memory (RLIMIT_DATA). */
  memoryBytes: number;
  /** Wall time; processor time may be as long on every core. Null: none. */
  timeLimitMs: number | null;
};

export type Grants = {
  /** Absolute paths of files and directories that the program may read. */
  reads: readonly string[];
  /** Absolute paths of directories that it may read and write. */
  writes: readonly string[];
  /** Whether it needs the devices of hardware encoders. */
  devices: boolean;
};

const limitsOf = ({ memoryBytes, timeLimitMs }: Limits): Record<string, number> => ({
  data: memoryBytes,
  ...(timeLimitMs !== null && { cpu: Math.ceil((timeLimitMs / 1000) * availableParallelism()) }),
  fsize: MAX_FILE_BYTES,
  nofile: MAX_OPEN_FILES,
});

export type Confinement = {
  limits: Limits;
  grants: Grants;
  cwd: string;
  /** The process that starts it and with which it ends; default: this process. */
  parent?: number | undefined;
  /** Its priority, as `nice` counts; only the launcher sets it. */
  nice: number;
};

/**
 * The command line that runs the program `name`, a path or a name in the system's directories, confined; its arguments
 * are to be appended. The process must be started in `cwd`.
 */
export async function sandboxedCommand(
  name: string,
  { limits, grants, cwd, parent = process.pid, nice }: Confinement,
  system?: Sandbox,
): Promise<string[]> {
  system ??= await sandbox();
  const program = await located(name);
  const isolation = (await canStart(program, system)) ? system.isolation : null;
  const { network, parentDeath, prlimit } = system;
  const groups = cgroupOptions(system.cgroups, limits.memoryBytes + KERNEL_MEMORY_BYTES);
  if (isolation?.kind === "launcher") {
    const { path, mode } = isolation;
    const bounds = Object.entries(limitsOf(limits)).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const process_ = [...THREADS, "--nice", String(nice), "--parent", String(parent)];
    const visible = await granted(program, grants, LAUNCHER);
    return [path, "--mode", mode, ...bounds, ...process_, ...groups, ...visible, "--", program];
  }
  const bounds = Object.entries(limitsOf(limits)).map(([name, value]) => `--${name}=${value}`);
  const limited = prlimit ? [prlimit, ...bounds, "--core=0"] : [];
  if (isolation?.kind === "bwrap") {
    const own = ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL"];
    const { launcher } = isolation;
    const visible = launcher ? BWRAP.read(launcher) : [];
    const filter = launcher
      ? [
          launcher,
          "--mode",
          "filter",
          ...THREADS,
          ...(grants.devices ? ENCODER_DEVICES.flatMap(LAUNCHER.device) : []),
          "--",
        ]
      : [];
    const grouped =
      launcher && groups.length > 0
        ? [launcher, "--mode", "groups", ...groups, ...THREADS, "--parent", String(parent), "--"]
        : [];
    return [
      ...grouped,
      ...limited,
      isolation.path,
      ...own,
      ...(await granted(program, grants, BWRAP)),
      ...visible,
      "--chdir",
      cwd,
      "--",
      ...filter,
      program,
    ];
  }
  // The death signal is set last, because executing a program with new privileges clears it.
  const dying = parentDeath.length > 0 ? [...parentDeath, String(parent)] : [];
  return [...network, ...limited, ...dying, program];
}

type Options = { read(path: string): string[]; write(path: string): string[]; device(path: string): string[] };
const LAUNCHER: Options = {
  read: (path) => ["--read", path],
  write: (path) => ["--write", path],
  device: (path) => ["--device", path],
};
const BWRAP: Options = {
  read: (path) => ["--ro-bind-try", path, path],
  write: (path) => ["--bind", path, path],
  device: (path) => ["--dev-bind-try", path, path],
};
const DEVICES = ["/dev/null", "/dev/urandom"];

async function granted(program: string, { reads, writes, devices }: Grants, options: Options): Promise<string[]> {
  const system = (await isStaticProgram(program)) ? [] : SYSTEM_PATHS;
  return [
    ...[...system, ...(devices ? ENCODER_PATHS : []), program, ...reads].flatMap(options.read),
    ...writes.flatMap(options.write),
    ...[...DEVICES, ...(devices ? ENCODER_DEVICES : [])].flatMap(options.device),
  ];
}

const staticPrograms = new Map<string, boolean>();

/** `isStatic`, cached by path because every run needs it. */
async function isStaticProgram(program: string): Promise<boolean> {
  const known = staticPrograms.get(program) ?? (await isStatic(program).catch(() => false));
  staticPrograms.set(program, known);
  return known;
}

/** Exit statuses of the launcher and of shells for a program that did not start. */
const NOT_STARTED = [125, 126, 127];
const starts = new Map<string, Promise<boolean>>();

/**
 * Whether `program` starts when it sees nothing but itself and the system's directories. An operator's own ffmpeg may
 * be a script that needs more; it runs with all limits but without the isolation, and `missingFor` reports that.
 */
function canStart(program: string, system: Sandbox): Promise<boolean> {
  const key = `${system.isolation?.path} ${program}`;
  const known = starts.get(key);
  if (known) return known;
  const tried = tryStart(program, system);
  starts.set(key, tried);
  return tried;
}

async function tryStart(program: string, { isolation, prlimit }: Sandbox): Promise<boolean> {
  if (!isolation || (await isStatic(program).catch(() => true))) return true;
  const cwd = await mkdtemp(join(tmpdir(), "vodbox-sandbox-"));
  try {
    const grants = { reads: [], writes: [cwd], devices: false };
    const inside =
      isolation.kind === "launcher"
        ? [isolation.path, "--mode", isolation.mode, ...(await granted(program, grants, LAUNCHER))]
        : [...(prlimit ? [prlimit, "--core=0"] : []), isolation.path, ...(await granted(program, grants, BWRAP))];
    const [file = "", ...args] = [...inside, "--", program, "-version"];
    await promisify(execFile)(file, args, { cwd, timeout: 10_000 });
    return true;
  } catch (error) {
    const { code } = error as { code?: unknown };
    return typeof code === "number" && !NOT_STARTED.includes(code);
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/**
 * What is missing on this system to confine `program`, for the log and `admin doctor`.
 * @example
 * Array.isArray(await missingIsolation("true")) // => true
 */
export async function missingIsolation(name: string, system?: Sandbox): Promise<string[]> {
  system ??= await sandbox();
  const program = await located(name);
  const { isolation, network, parentDeath, prlimit } = system;
  const isIsolated = isolation !== null && (await canStart(program, system));
  const hasNetwork = isIsolated ? isolation.kind === "bwrap" || isolation.mode === "namespaces" : network.length > 0;
  const isLauncher = isIsolated && isolation.kind === "launcher";
  return [
    ...(isIsolated
      ? []
      : [isolation ? `no file system isolation: ${program} does not start in it` : "no file system isolation"]),
    ...(hasNetwork ? [] : ["no network namespace"]),
    ...(isLauncher || prlimit ? [] : ["no limits on memory and processor time"]),
    ...(isIsolated || parentDeath.length > 0 ? [] : ["no termination with the parent"]),
  ];
}

/** What control groups limit for `program`, as the log and `admin doctor` report it. */
export async function describeTotalLimits(name: string, system?: Sandbox): Promise<string> {
  system ??= await sandbox();
  const limited = (await canStart(await located(name), system)) ? limitsByCgroup(system.cgroups) : [];
  const names = { memory: "memory", pids: "threads" };
  if (limited.length === 0) return "no control group";
  return `a control group limits the ${limited.map((one) => names[one]).join(" and the ")} of each run`;
}
