import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, type TestContext, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/**
 * 0.8 of it is for the namespaces that isolate ffmpeg: it is 1.9 without them, where ffmpeg could read what vodbox can. 0.1 is
 * for the control groups that limit the memory and the threads of each run of it.
 */
const MAX_EXPOSURE = 2.9;

/**
 * `./install.sh --service` in a private root: /etc and /run are those of this namespace, and `systemctl`, `useradd` and
 * `npm` record their arguments. The test is skipped where such a namespace is not available.
 */
function install(context: TestContext, { prefix, restart = "exit 0" }: { prefix: string; restart?: string }) {
  const folder = emptyFolder();
  const stubs = join(folder, "bin");
  const etc = join(folder, "etc");
  for (const each of [stubs, etc]) mkdirSync(each);
  const stub = (name: string, more = "exit 0") => {
    writeFileSync(join(stubs, name), `#!/bin/sh\necho "${name} $*" >>${folder}/calls\n${more}\n`);
    chmodSync(join(stubs, name), 0o755);
  };
  stub("systemctl", `[ "$1" = restart ] || exit 0\n${restart}`);
  stub("useradd");
  stub("npm");
  writeFileSync(join(etc, "passwd"), "root:x:0:0::/root:/bin/sh\n");
  const script = `mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && mount --bind ${etc} /etc &&
    mkdir -p /etc/systemd/system && PATH=${stubs}:$PATH exec ./install.sh --service --prefix '${prefix}'`;
  const command = ["--user", "--map-root-user", "--mount", "sh", "-c"];
  if (spawnSync("unshare", [...command, "mount -t tmpfs tmpfs /run"]).status !== 0) {
    console.warn("skipped: no namespace of mounts can be made here");
    context.skip();
  }
  const ended = spawnSync("unshare", [...command, script], { cwd: ROOT, encoding: "utf8", timeout: 60_000 });
  const unit = join(etc, "systemd/system/vodbox.service");
  return { ...ended, unit, calls: () => readFileSync(join(folder, "calls"), "utf8").trim().split("\n") };
}

test("install.sh --service installs a unit that systemd accepts without warnings, and starts it", (context) => {
  const prefix = join(emptyFolder(), "a & b|c 50%");
  const { status, stdout, stderr, unit, calls } = install(context, { prefix });
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("Started vodbox.service");
  expect(calls()).toEqual([
    "npm ci --no-progress --loglevel=error",
    "npm run --silent build --",
    "useradd --system --user-group --home-dir /var/lib/vodbox --no-create-home --shell /usr/sbin/nologin vodbox",
    "systemctl daemon-reload",
    "systemctl enable --quiet vodbox",
    "systemctl restart vodbox",
  ]);
  expect(statSync(join(prefix, "bin/vodbox")).mode & 0o777).toBe(0o755);
  expect(readFileSync(unit, "utf8")).toContain(`ExecStart="${prefix}%/bin/vodbox" serve`);

  const analyze = (...args: string[]) => spawnSync("systemd-analyze", [...args, unit], { encoding: "utf8" });
  const verified = analyze("verify");
  expect([verified.status, verified.stdout, verified.stderr]).toEqual([0, "", ""]);
  const exposure = analyze("security", "--offline=true");
  const level = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(exposure.stdout)?.[1]);
  expect(level).toBeLessThan(MAX_EXPOSURE);
});

test("a service that does not become ready is reported, with where to look", (context) => {
  const { status, stderr, stdout } = install(context, { prefix: join(emptyFolder(), "p"), restart: "exit 1" });
  expect([status, stdout.includes("Started")]).toEqual([1, false]);
  expect(stderr).toMatch(/^install\.sh: vodbox\.service is not ready\. .*journalctl -u vodbox\n$/);
});
