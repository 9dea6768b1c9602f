import { execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { atEnd, emptyFolder, newFolder } from "./folder.ts";
import { type Started, watched } from "./process.ts";

const SCRIPT = join(import.meta.dirname, "container.sh");
const SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin";

export type Image = {
  /** The unpacked layers. */
  root: string;
  /** The archive's own files. */
  layout: string;
  config: {
    User: string;
    Env: string[];
    Entrypoint: string[];
    Cmd: string[];
    Healthcheck: { Test: string[] };
    Volumes: Record<string, object>;
  };
};

/** Unpacks an image's archive as container engines do, by its index. The caller removes `folder`. */
export function unpackedImage(archive: string): Image & { folder: string } {
  const folder = newFolder();
  const layout = join(folder, "layout");
  const root = join(folder, "root");
  for (const each of [layout, root]) mkdirSync(each);
  execFileSync("tar", ["-xf", archive, "-C", layout]);
  const json = (path: string) => JSON.parse(readFileSync(join(layout, path), "utf8"));
  const blob = ({ digest }: { digest: string }) => join("blobs", digest.replace(":", "/"));
  const manifest = json(blob(json("index.json").manifests[0]));
  for (const layer of manifest.layers) execFileSync("tar", ["-xzpf", join(layout, blob(layer)), "-C", root]);
  return { folder, root, layout, config: json(blob(manifest.config)).config };
}

export type Container = Started & { first(): number | null; inside(...command: string[]): Started };

/** A container without an engine: the image's user, environment, volumes and command, with a read-only root. */
export function runContainer(image: Image, settings: Record<string, string>, args: string[]): Container {
  const volumes = emptyFolder();
  chmodSync(volumes, 0o755);
  const [user = 0, group = 0] = image.config.User.split(":").map(Number);
  for (const name of ["data", "cache"]) {
    mkdirSync(join(volumes, name));
    chownSync(join(volumes, name), user, group);
  }
  const given = Object.fromEntries(image.config.Env.map((pair) => pair.split("=", 2)));
  const env = { ...given, ...settings } as unknown as NodeJS.ProcessEnv;
  const namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts"];
  const command = [SCRIPT, image.root, image.config.User, volumes, ...image.config.Entrypoint, ...args];
  // The script's programs are those of this machine.
  const started = watched(spawn("unshare", [...namespaces, "sh", ...command], { env: { ...env, PATH: SYSTEM_PATH } }));
  /** The first process of the container, as seen from outside; null once it has ended. */
  const first = (): number | null => {
    const { pid } = started.child;
    const path = `/proc/${pid}/task/${pid}/children`;
    return existsSync(path) ? Number(readFileSync(path, "utf8")) || null : null;
  };
  // The kernel forgets that it should end with `unshare` when it changes its user.
  atEnd(() => {
    const pid = first();
    if (pid !== null) process.kill(pid, "SIGKILL");
  });
  const inside = (...rest: string[]) => {
    const target = ["-t", String(first()), "--mount", "--pid", "--root", "--wd", "-S", `${user}`, "-G", `${group}`];
    return watched(spawn("/usr/bin/nsenter", [...target, ...rest], { env }));
  };
  return { ...started, first, inside };
}
