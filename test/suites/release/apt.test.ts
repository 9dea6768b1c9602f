import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { type AptOptions, KEYRING, writeAptRepository } from "#scripts/release/apt/repository.ts";
import { writeDeb } from "#scripts/release/deb/deb.ts";
import { aptServer, NO_OTHER_SOURCES } from "#test/support/apt-server.ts";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { newGpgKey, stopGpgAgent } from "#test/support/gpg-key.ts";
import { type Root, throwAwayRoot } from "#test/support/throw-away-root.ts";

const DATE = new Date("2026-11-01T12:00:00Z");
const LATER = new Date("2026-11-02T12:00:00Z");

/** Packages of two versions, whose program prints its version, and repositories with the first one, and with both. */
let folder: string;
let key: string;
beforeAll(async () => {
  folder = newFolder();
  const home = process.env.GNUPGHOME;
  process.env.GNUPGHOME = join(folder, "gpg");
  key = newGpgKey(process.env.GNUPGHOME);
  for (const version of ["1.0.0", "1.1.0"])
    for (const arch of ["x64", "arm64"] as const)
      await writeDeb(arch, program(version), deb(version, arch), { version });
  await writeAptRepository(join(folder, "first"), debs("1.0.0"), { key, date: DATE });
  await both(join(folder, "both"));
  return () => {
    stopGpgAgent(join(folder, "gpg"));
    removeFolder(folder);
    if (home === undefined) delete process.env.GNUPGHOME;
    else process.env.GNUPGHOME = home;
  };
});

const deb = (version: string, arch: string) => join(folder, `vodbox_${version}_${arch === "x64" ? "amd64" : arch}.deb`);
const debs = (version: string) => ["x64", "arm64"].map((arch) => deb(version, arch));
const both = (target: string, options: Partial<AptOptions> = {}) =>
  writeAptRepository(target, debs("1.1.0"), { key, date: LATER, previous: join(folder, "first"), ...options });

function program(version: string): string {
  const file = join(folder, `program-${version}`);
  writeFileSync(file, `#!/bin/sh\necho version ${version}\n`);
  chmodSync(file, 0o755);
  return file;
}

/** A machine that has only the repository at `url` as a source, with the key of docs/operations.md. */
async function machine(url: string): Promise<Root> {
  const root = await throwAwayRoot();
  cpSync(join(folder, "first", KEYRING), join(root.folder, KEYRING));
  const source = `Types: deb\nURIs: ${url}\nSuites: stable\nComponents: main\nSigned-By: /etc/apt/keyrings/${KEYRING}\n`;
  writeFileSync(join(root.folder, "vodbox.sources"), source);
  await root.sh(`${NO_OTHER_SOURCES}
    cd ${root.folder}; install -D -m 0644 ${KEYRING} /etc/apt/keyrings/${KEYRING}
    install -m 0644 vodbox.sources /etc/apt/sources.list.d/`);
  return root;
}

/** apt-get with the defaults for what it refuses, whatever this machine's configuration is, and with warnings as errors. */
const APT =
  "apt-get -qq -o APT::Update::Error-Mode=any -o Dpkg::Use-Pty=0 -o Acquire::Check-Valid-Until=yes -o Acquire::Check-Date=yes";

test("apt installs, upgrades and downgrades from the repository, and keeps data and settings", async () => {
  const { url, paths, show } = await aptServer(join(folder, "first"));
  const { sh } = await machine(url);
  await sh(`${APT} update 2>&1`);
  expect(paths.some((path) => path.startsWith("/dists/stable/main/binary-amd64/by-hash/SHA256/"))).toBe(true);
  await sh(`${APT} install -y vodbox 2>&1`);
  expect(await sh("vodbox")).toBe("version 1.0.0\n");
  await sh("echo VODBOX_PORT=81 >>/etc/vodbox/vodbox.env; touch /var/lib/vodbox/data");

  show(join(folder, "both"));
  await sh(`${APT} update 2>&1`);
  expect(await sh("apt list --upgradable 2>/dev/null")).toMatch(/^vodbox\/stable 1\.1\.0 amd64/m);
  await sh(`${APT} upgrade -y </dev/null 2>&1`);
  expect(await sh("vodbox")).toBe("version 1.1.0\n");
  expect(await sh("tail -1 /etc/vodbox/vodbox.env; ls /var/lib/vodbox")).toBe("VODBOX_PORT=81\ndata\n");
  await sh(`${APT} install -y --allow-downgrades vodbox=1.0.0 </dev/null 2>&1`);
  expect(await sh("vodbox")).toBe("version 1.0.0\n");

  const purged = await sh(`${APT} purge -y vodbox </dev/null 2>&1`);
  expect(purged).toContain("The data in /var/lib/vodbox and its user are kept.");
  expect(await sh("ls /var/lib/vodbox; test ! -e /etc/vodbox")).toBe("data\n");
});

/** Changes a file of the repository, in a copy; its path is a pattern. */
function changed(path: string, change: (file: string) => void): string {
  const copy = join(emptyFolder(), "changed");
  cpSync(join(folder, "both"), copy, { recursive: true });
  const files = globSync(path, { cwd: copy }).filter((name) => statSync(join(copy, name)).isFile());
  expect(files).not.toEqual([]);
  for (const name of files) change(join(copy, name));
  return copy;
}

const REMOVE = (file: string) => rmSync(file);
const APPEND = (file: string) => appendFileSync(file, "\n");
test.each<[string, () => string | Promise<string>, RegExp]>([
  [
    "without signatures",
    () => changed("dists/stable/{InRelease,Release.gpg}", REMOVE),
    /The repository .* (is not signed|does not have a Release file)/,
  ],
  [
    "whose Release was changed, with the old signature apart from it",
    () => {
      const copy = changed("dists/stable/InRelease", REMOVE);
      appendFileSync(join(copy, "dists/stable/Release"), "Suite: other\n");
      return copy;
    },
    /is not signed|invalid: BADSIG/,
  ],
  [
    "whose signed text was changed",
    () =>
      changed("dists/stable/InRelease", (file) =>
        writeFileSync(file, readFileSync(file, "utf8").replace("Label: vodbox", "Label: VODBOX")),
      ),
    /is not signed|invalid: BADSIG/,
  ],
  [
    "whose index was changed",
    () => changed("dists/**/Packages*", APPEND),
    /File has unexpected size|Hash Sum mismatch/,
  ],
  [
    "that another key signed",
    async () => {
      const target = join(emptyFolder(), "other");
      await both(target, { key: newGpgKey(join(folder, "gpg")) });
      return target;
    },
    /NO_PUBKEY/,
  ],
  [
    "that is no longer valid",
    async () => {
      const target = join(emptyFolder(), "expired");
      await both(target, { date: new Date("2020-01-01T00:00:00Z"), validDays: 7 });
      return target;
    },
    /is expired|is not valid anymore/,
  ],
])("apt refuses a repository %s", async (name, repository, message) => {
  const { url, show } = await aptServer(join(folder, "first"));
  show(await repository());
  const { start, sh } = await machine(url);
  // The index by hash is not the one that was changed.
  const byHash = name.includes("index") ? "-o Acquire::By-Hash=no" : "";
  const { code, stdout } = await start(`${APT} ${byHash} update 2>&1`).ended;
  expect([code, stdout]).toEqual([100, expect.stringMatching(message)]);
  expect(await sh("apt-cache policy vodbox 2>&1")).not.toContain("Candidate: 1.1.0");
});

test("apt refuses a package that was changed", async () => {
  const { url, show } = await aptServer(join(folder, "first"));
  show(
    changed("pool/main/v/vodbox/*_1.1.0_amd64.deb", (file) => {
      const content = readFileSync(file);
      content[content.length - 20] = (content.at(-20) as number) ^ 1;
      writeFileSync(file, content);
    }),
  );
  const { start, sh } = await machine(url);
  await sh(`${APT} update 2>&1`);
  const { code, stdout } = await start(`${APT} install -y vodbox 2>&1`).ended;
  expect([code, stdout]).toEqual([100, expect.stringContaining("Hash Sum mismatch")]);
  expect(await sh("command -v vodbox || echo none")).toBe("none\n");
});

test("the same packages give the same repository, except for its signatures", async () => {
  const again = join(emptyFolder(), "again");
  await both(again);
  const files = (root: string) =>
    globSync("**/*.*", { cwd: root }).concat(globSync("**/{Packages,Release}", { cwd: root }));
  const contents = (root: string) =>
    files(root)
      .filter((name) => statSync(join(root, name)).isFile() && !name.endsWith(".gpg"))
      .sort()
      .map((name) => [name, readFileSync(join(root, name), "base64")]);
  expect(contents(again)).toEqual(contents(join(folder, "both")));
  const release = readFileSync(join(again, "dists/stable/Release"), "utf8");
  expect(release).toContain("Architectures: amd64 arm64\n");
  expect(release).not.toContain("Valid-Until");
  // Clients that have read the older Release find its indexes.
  const older = globSync("dists/**/by-hash/SHA256/*", { cwd: join(folder, "first") });
  expect(older.filter((path) => !existsSync(join(again, path)))).toEqual([]);
});

test("a repository is not written with a previous one that is none", async () => {
  const previous = emptyFolder();
  mkdirSync(join(previous, "pool"));
  await expect(both(join(emptyFolder(), "x"), { previous })).rejects.toThrow(
    `${previous} is no apt repository of vodbox`,
  );
});
