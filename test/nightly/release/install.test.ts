import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { own } from "#scripts/build/paths.ts";
import { commandsPackage } from "#scripts/clients/commands.ts";
import { goPackageName } from "#scripts/clients/go/package.ts";
import { n8nPackageName } from "#scripts/clients/n8n.ts";
import { phpPackageName, wordPressPluginName } from "#scripts/clients/php/package.ts";
import { debianArch } from "#scripts/debian/packages.ts";
import { ffmpegPackageFile } from "#scripts/release/ffmpeg-package.ts";
import { formulaName } from "#scripts/release/homebrew.ts";
import { installer } from "#scripts/release/installer.ts";
import { provenanceName } from "#scripts/release/provenance.ts";
import { SIGNATURE } from "#scripts/release/sign.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { watched } from "#test/support/process.ts";
import { RELEASE_MS, RELEASED, release } from "#test/support/release.ts";

const NAME = `vodbox-${own.version}-linux-x64`;
let folder: string;
beforeAll(async () => {
  folder = await release();
}, RELEASE_MS);

/** The release on loopback, with some files replaced; null answers 404. */
async function served(replaced: Record<string, Buffer | null> = {}): Promise<string> {
  const server = createServer((request, response) => {
    const name = basename(request.url ?? "");
    const other = replaced[name];
    if (other === null || (other === undefined && !existsSync(join(folder, name))))
      return response.writeHead(404).end();
    if (other) return response.end(other);
    return createReadStream(join(folder, name)).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/download/`;
}

/** `curl URL/install.sh | sh -s -- ARGUMENTS`, as a user without any settings. */
async function install(base: string, ...args: string[]) {
  const script = await (await fetch(`${base}install.sh`)).text();
  const env = { PATH: process.env.PATH } as NodeJS.ProcessEnv;
  const child = spawn("sh", ["-s", "--", ...args], { env, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(script);
  return watched(child).ended;
}

const sumOf = (name: string) =>
  createHash("sha256")
    .update(readFileSync(join(folder, name)))
    .digest("hex");

test("SHA256SUMS lists every file of the release", () => {
  const files = readdirSync(folder).filter((name) => name !== "apt");
  const names = files.filter((name) => !name.endsWith(SIGNATURE));
  const lines = names.filter((name) => name !== "SHA256SUMS").map((name) => `${sumOf(name)}  ${name}`);
  expect(readFileSync(join(folder, "SHA256SUMS"), "utf8").trim().split("\n").sort()).toEqual(lines.sort());
  const debs = RELEASED.map((arch) => `vodbox_${own.version}_${debianArch(arch)}.deb`);
  const others = RELEASED.flatMap((arch) =>
    ["", ".oci.tar", ".cdx.json"].map((suffix) => `vodbox-${own.version}-linux-${arch}${suffix}`),
  );
  const ofPython = [`vodbox-${own.version}-py3-none-any.whl`, `vodbox-${own.version}.tar.gz`];
  const clients = [
    ...ofPython,
    phpPackageName,
    wordPressPluginName,
    n8nPackageName,
    goPackageName,
    ...["client", "react", "vue"].map((name) => `vodbox-${name}-${own.version}.tgz`),
  ];
  const deploy = ["alerts.yml", "compose.workers.yaml", "compose.yaml", "grafana.json", "prometheus.yml"];
  const expected = [
    "SHA256SUMS",
    "install.sh",
    `vodbox-helm-${own.version}.tgz`,
    provenanceName,
    formulaName,
    commandsPackage,
    ...RELEASED.map(ffmpegPackageFile),
    ...clients,
    ...debs,
    ...others,
    ...deploy,
  ];
  expect(names.sort()).toEqual(expected.sort());
  const signatures = files.filter((name) => name.endsWith(SIGNATURE));
  expect(signatures.sort()).toEqual(expected.map((name) => `${name}${SIGNATURE}`).sort());
});

test("installs from a server, and again over itself", async () => {
  const base = await served();
  const prefix = join(emptyFolder(), "a prefix");
  for (let round = 0; round < 2; round++) {
    const { code, stderr, stdout } = await install(base, `--from=${base}`, "--prefix", prefix);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`Installed ${prefix}/bin/vodbox`);
    expect(readdirSync(join(prefix, "bin"))).toEqual(["vodbox"]);
  }
  const installed = join(prefix, "bin/vodbox");
  expect(statSync(installed).mode & 0o777).toBe(0o755);
  const { stdout } = await watched(
    spawn(installed, ["--version"], { env: { VODBOX_CACHE_DIR: emptyFolder() } as never }),
  ).ended;
  expect(stdout).toContain(`vodbox  ${own.version}\n`);
});

test.each([
  [
    "a tampered executable",
    { [NAME]: Buffer.from("#!/bin/sh\necho hello\n") },
    /the checksum of \S+ is \w{64}, not \w{64} as in SHA256SUMS\. Nothing was installed/,
  ],
  ["an executable that is cut off", { [NAME]: Buffer.alloc(0) }, /the checksum of \S+ is/],
  ["a missing executable", { [NAME]: null }, /could not be downloaded/],
  ["a missing list", { SHA256SUMS: null }, /SHA256SUMS could not be downloaded/],
  [
    "a list of another version",
    { SHA256SUMS: Buffer.from(`${"0".repeat(64)}  vodbox-9.9.9-linux-x64\n`) },
    /the signature of SHA256SUMS is not that of key/,
  ],
])("refuses %s and leaves what is installed", async (_, replaced, message) => {
  const prefix = emptyFolder();
  const base = await served(replaced as unknown as Record<string, Buffer | null>);
  const { code, stderr } = await install(base, `--from=${base}`, `--prefix=${prefix}`);
  expect(code).toBe(1);
  expect(stderr).toMatch(message);
  expect(readdirSync(join(prefix, "bin"))).toEqual([]);
});

test("a release without a download URL asks for one; with one it is the default", async () => {
  const base = await served({ "install.sh": Buffer.from(installer("")) });
  expect(await install(base, "--prefix", emptyFolder())).toMatchObject({
    code: 1,
    stderr: "install.sh: this release has no download URL; set one with --from=URL or VODBOX_DOWNLOAD_URL.\n",
  });
  const own = await served();
  const withDefault = await served({ "install.sh": Buffer.from(installer(own)) });
  expect(await install(withDefault, "--prefix", emptyFolder())).toMatchObject({ code: 0, stderr: "" });
  expect(() => installer("http://example.com/$(reboot)")).toThrow("is not a URL");
});

test("a script that is cut off does nothing", async () => {
  const base = await served();
  const script = await (await fetch(`${base}install.sh`)).text();
  for (const share of [0.3, 0.6, 0.9, 0.99]) {
    const prefix = emptyFolder();
    const cut = await served({ "install.sh": Buffer.from(script.slice(0, Math.floor(script.length * share))) });
    await install(cut, `--from=${base}`, "--prefix", prefix);
    expect(readdirSync(prefix)).toEqual([]);
  }
});
