import { execFileSync, spawn } from "node:child_process";
import { createReadStream, existsSync, globSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { own } from "#scripts/build/paths.ts";
import { sha256, writeChecksums } from "#scripts/release/checksums.ts";
import { installer } from "#scripts/release/installer.ts";
import { provenanceName, writeProvenance } from "#scripts/release/provenance.ts";
import { publicKeyOf, SIGNATURE, signFiles } from "#scripts/release/sign.ts";
import { atEnd, emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { watched } from "#test/support/process.ts";
import { newReleaseKey, type ReleaseKey } from "#test/support/release-key.ts";

const NAME = `vodbox-${own.version}-linux-${process.arch}`;
const PARAMETERS = { architectures: [process.arch], stage: "linked", base_url: "" };

let key: ReleaseKey;
/** Links to everything on the PATH except minisign, or minisign and openssl. */
let withoutMinisign: string;
let withoutBoth: string;
beforeAll(() => {
  const folder = newFolder();
  key = newReleaseKey(folder);
  withoutMinisign = pathWithout(["minisign"]);
  withoutBoth = pathWithout(["minisign", "openssl"]);
  return () => [folder, withoutMinisign, withoutBoth].forEach(removeFolder);
});

function pathWithout(names: string[]): string {
  const folder = newFolder();
  for (const path of ["/usr/bin", "/bin"].flatMap((each) => globSync(`${each}/*`))) {
    const link = join(folder, basename(path));
    if (!names.includes(basename(path)) && !existsSync(link)) symlinkSync(path, link);
  }
  return folder;
}

/** A signed release whose executable is a script, in a new folder. */
async function smallRelease(signer = key): Promise<string> {
  const folder = emptyFolder();
  writeFileSync(join(folder, NAME), "#!/bin/sh\necho the program\n");
  writeFileSync(join(folder, "install.sh"), installer("", key.public));
  await writeProvenance(folder, PARAMETERS);
  await writeChecksums(folder);
  signFiles(folder, signer.secret);
  return folder;
}

async function install(folder: string, { args = [] as string[], path = "/usr/bin:/bin" } = {}) {
  const server = createServer((request, response) => {
    const file = join(folder, basename(request.url ?? ""));
    if (!existsSync(file)) return response.writeHead(404).end();
    return createReadStream(file).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => void server.close());
  const from = `--from=http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const prefix = emptyFolder();
  const script = join(folder, "install.sh");
  const child = spawn("/bin/sh", [script, from, "--prefix", prefix, ...args], { env: { PATH: path } as never });
  const ended = await watched(child).ended;
  return { ...ended, installed: readdirSync(join(prefix, "bin")) };
}

test("every file of a release has a signature that minisign verifies, and the same files get the same ones", async () => {
  expect(publicKeyOf(key.secret)).toBe(key.public);
  const folder = await smallRelease();
  const signed = readdirSync(folder).filter((name) => !name.endsWith(SIGNATURE));
  expect(signed.sort()).toEqual(["SHA256SUMS", "install.sh", NAME, provenanceName].sort());
  const verify = (name: string) =>
    execFileSync("minisign", ["-V", "-P", key.public, "-m", join(folder, name)], { encoding: "utf8" });
  for (const name of signed) expect(verify(name)).toContain(`Trusted comment: vodbox ${own.version}\n`);
  const again = await smallRelease();
  for (const name of readdirSync(folder))
    expect([name, readFileSync(join(again, name), "utf8")]).toEqual([name, readFileSync(join(folder, name), "utf8")]);
});

test("the provenance names every file, the commit and what the release was made with", async () => {
  const folder = await smallRelease();
  const { subject, predicate, ...rest } = JSON.parse(readFileSync(join(folder, provenanceName), "utf8"));
  expect(rest).toEqual({
    _type: "https://in-toto.io/Statement/v1",
    predicateType: "https://slsa.dev/provenance/v1",
  });
  const expected = [];
  for (const name of ["install.sh", NAME].sort())
    expected.push({ name, digest: { sha256: await sha256(join(folder, name)) } });
  expect(subject).toEqual(expected);
  const gitCommit = execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).trim();
  expect(predicate.buildDefinition).toMatchObject({
    externalParameters: PARAMETERS,
    resolvedDependencies: [{ name: "vodbox", digest: { gitCommit } }, { name: "package-lock.json" }],
  });
  expect(predicate.runDetails.builder.id).toMatch(/^(urn|https?):\S+$/);
});

describe.each([
  ["minisign", () => "/usr/bin:/bin"],
  ["OpenSSL", () => withoutMinisign],
])("the installer with %s", (_, path) => {
  test("installs what is signed", async () => {
    const ended = await install(await smallRelease(), { path: path() });
    expect(ended).toMatchObject({ code: 0, stderr: "", installed: ["vodbox"] });
  });

  test.each<[string, (folder: string) => void | Promise<void>, RegExp]>([
    [
      "another program with its checksum",
      async (folder) => {
        writeFileSync(join(folder, NAME), "#!/bin/sh\necho another program\n");
        await writeChecksums(folder);
      },
      /^install\.sh: the signature of SHA256SUMS is not that of key \S{56}\. Nothing was installed/,
    ],
    [
      "a signature by another key",
      async (folder) => signFiles(folder, newReleaseKey(emptyFolder()).secret),
      /the signature of SHA256SUMS is not that of key/,
    ],
    [
      "the signature of another file",
      async (folder) =>
        writeFileSync(join(folder, `SHA256SUMS${SIGNATURE}`), readFileSync(join(folder, `install.sh${SIGNATURE}`))),
      /the signature of SHA256SUMS is not that of key/,
    ],
    [
      "a signature that is none",
      (folder) => writeFileSync(join(folder, `SHA256SUMS${SIGNATURE}`), "<!doctype html>\n<title>Welcome</title>\n"),
      /the signature of SHA256SUMS is not that of key/,
    ],
    [
      "no signature",
      (folder) => removeFolder(join(folder, `SHA256SUMS${SIGNATURE}`)),
      /SHA256SUMS\.minisig could not be downloaded/,
    ],
  ])("refuses %s", async (_, change, message) => {
    const folder = await smallRelease();
    await change(folder);
    const ended = await install(folder, { path: path() });
    expect(ended).toMatchObject({ code: 1, installed: [] });
    expect(ended.stderr).toMatch(message);
  });
});

test("without minisign and OpenSSL 3 the installer says what to do, and can verify the checksum only", async () => {
  const folder = await smallRelease();
  const child = spawn("/bin/sh", [join(folder, "install.sh"), "--from=http://127.0.0.1:9", "--prefix", emptyFolder()], {
    env: { PATH: withoutBoth } as never,
  });
  expect(await watched(child).ended).toMatchObject({
    code: 1,
    stderr:
      "install.sh: the signature cannot be checked: install minisign or OpenSSL 3. --checksum-only installs without that check.\n",
  });
  const ended = await install(folder, { path: withoutBoth, args: ["--checksum-only"] });
  expect(ended).toMatchObject({ code: 0, stderr: "", installed: ["vodbox"] });
});

test("an installer without a key verifies the checksum; a text that is no key is refused", async () => {
  const folder = await smallRelease();
  writeFileSync(join(folder, "install.sh"), installer(""));
  removeFolder(join(folder, `SHA256SUMS${SIGNATURE}`));
  expect(await install(folder, { path: withoutBoth })).toMatchObject({ code: 0, installed: ["vodbox"] });
  expect(() => installer("", '"; reboot; "')).toThrow("is no public key of minisign");
});
