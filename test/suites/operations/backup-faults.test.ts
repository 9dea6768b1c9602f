import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import Sqlite from "libsql";
import { pack } from "tar-stream";
import { beforeAll, expect, test, vi } from "vitest";
import { amount } from "#test/support/amount.ts";
import { archiveOf, type Member, member, membersOf, summed } from "#test/support/archives.ts";
import { filledServer, operator, ownServer, restoring } from "#test/support/backups.ts";
import { refused } from "#test/support/commands/outcome.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { vodbox } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";

vi.setConfig({ testTimeout: 600_000 });
const { cli, done, failed } = operator();

/** More by hand: CUTS=5000 vitest run test/suites/operations/backup-faults.test.ts */
const CUTS = amount(12, 60, "CUTS");
const MEGABYTE = 2 ** 20;

let whole = "";
let bytes = Buffer.alloc(0);
let members: Member[] = [];
beforeAll(async () => {
  const folder = newFolder();
  const { server, dataDir } = await filledServer(join(folder, "data"));
  server.child.kill("SIGTERM");
  await server.ended;
  whole = join(folder, "whole.tar");
  await done("backup", whole, "--objects", "--data", dataDir);
  bytes = readFileSync(whole);
  members = await membersOf(whole);
  return () => removeFolder(folder);
});

/** Contents of a directory whose restore was refused; only its lock may remain. */
const leftIn = (dataDir: string) =>
  existsSync(dataDir) ? readdirSync(dataDir).filter((each) => !each.startsWith("server.")) : [];

/** The message, after checking that nothing remains. */
async function refusal(content: Buffer, name: string, flags = {}): Promise<string> {
  const folder = newFolder();
  const file = join(folder, "faulty.tar");
  const fresh = join(folder, "data");
  try {
    writeFileSync(file, content);
    const sentence = await restoring(file, fresh, flags);
    expect.soft(sentence, name).not.toBeNull();
    expect.soft(sentence, name).toContain(file);
    expect.soft(sentence, name).toMatch(/^[^\n]*[.)]$/);
    expect.soft(leftIn(fresh), name).toEqual([]);
    expect.soft(readdirSync(folder).sort(), name).toEqual(["data", "faulty.tar"]);
    return String(sentence);
  } finally {
    removeFolder(folder);
  }
}

test("files that are truncated, altered or not a backup are refused, and nothing is left", async () => {
  const at = (text: string) => bytes.indexOf(text);
  const altered = (position: number) => {
    const copy = Buffer.from(bytes);
    copy[position] = (copy[position] as number) ^ 1;
    return copy;
  };
  const manifest = at('"format"');
  const rows: [string, Buffer, RegExp][] = [
    ["empty", Buffer.alloc(0), /cannot be restored/],
    ["a byte", Buffer.from("x"), /truncated, altered or not a backup/],
    ["text", Buffer.from("SELECT 1;\n".repeat(200)), /truncated, altered or not a backup/],
    ["a third", bytes.subarray(0, Math.floor(bytes.length / 3)), /truncated/],
    ["without its end", bytes.subarray(0, at("manifest.json.sha256")), /truncated/],
    ["on a member's end", bytes.subarray(0, at("manifest.json")), /it is truncated/],
    ["database altered", altered(5000), /vodbox\.db was altered/],
    ["object altered", altered(at("source of the first")), /objects\/tenants.* was altered/],
    ["secret altered", altered(at("secrets/signing_secret") + 520), /secrets\/signing_secret was altered/],
    ["list altered", altered(at('{"key"') + 10), /was altered/],
    ["manifest altered", altered(manifest + 20), /manifest\.json was altered/],
  ];
  for (const [name, content, reason] of rows) expect.soft(await refusal(content, name), name).toMatch(reason);
  expect(await failed("restore", `${whole}.none`, "--check")).toContain("does not exist");
  expect(await refused(["admin", "restore"], 2)).toContain("file");
});

test("an archive truncated at any position is refused, compressed or not; one with any byte altered, too, or restored unchanged", async () => {
  const random = seeded();
  const packed = zstdCompressSync(bytes);
  for (let i = 0; i < CUTS; i++) {
    // The last two blocks of a tar are its end, and empty.
    const cut = i % 2 ? random.whole(0, bytes.length - 1024) : 512 * random.whole(0, bytes.length / 512 - 2);
    await refusal(bytes.subarray(0, cut), `cut at ${cut} of ${bytes.length}`);
    const short = random.whole(0, packed.length - 8);
    await refusal(packed.subarray(0, short), `packed, cut at ${short} of ${packed.length}`);
  }
  // Padding between members and after the end has no meaning.
  const expected = (name: string) => members.find(({ header }) => header.name === name)?.bytes as Buffer;
  for (let i = 0; i < CUTS; i++) {
    const content = Buffer.from(i % 2 ? bytes : packed);
    const place = random.whole(0, content.length - 1);
    content[place] = (content[place] as number) ^ (1 << random.whole(0, 7));
    const folder = newFolder();
    const name = `${i % 2 ? "tar" : "packed"}, ${place} altered`;
    writeFileSync(join(folder, "a.tar"), content);
    const sentence = await restoring(join(folder, "a.tar"), join(folder, "data"));
    if (sentence !== null) expect.soft(leftIn(join(folder, "data")), `${name}: ${sentence}`).toEqual([]);
    else
      for (const { header } of members.filter((one) => /^(objects|secrets)\//.test(one.header.name)))
        expect.soft(readFileSync(join(folder, "data", header.name)), name).toEqual(expected(header.name));
    removeFolder(folder);
  }
});

test("members that no backup has are refused: other paths, links, devices, duplicates, and sizes that do not match", async () => {
  const last = members.slice(-2);
  const first = members.slice(0, -2);
  const rows: [string, Member[], RegExp][] = [
    ...[
      "../outside",
      "/tmp/outside",
      "objects/../../outside",
      "objects//outside",
      "objects/",
      "secrets/../outside",
    ].map((name): [string, Member[], RegExp] => [name, [member(name, "x")], /not a vodbox backup/]),
    ...(["symlink", "link", "character-device", "block-device", "fifo", "directory"] as const).map(
      (type): [string, Member[], RegExp] => [
        type,
        [{ header: { name: "vodbox.db", type, linkname: "/etc/passwd" }, bytes: Buffer.alloc(0) }],
        new RegExp(`is a ${type}`),
      ],
    ),
    ["two databases", [...first, first[0] as Member, ...last], /contains vodbox\.db twice/],
    ["two lists", [...first, member("objects.jsonl", ""), ...last], /contains objects\.jsonl twice/],
    ["an object twice", [...first, first.find(isObject) as Member, ...last], /not a vodbox backup/],
    ["two manifests", [...members, ...last], /continues after/],
    ["an object under an object", [...first, within(first), ...last], /not a vodbox backup/],
    ["one more object", [...first, member("objects/more", "x"), ...last], /list does not contain objects\/more/],
  ];
  for (const [name, content, reason] of rows)
    expect.soft(await refusal(await archiveOf(content), name), name).toMatch(reason);

  // Matching checksums do not make it a backup.
  const rebuilt = (change: (all: Member[]) => Member[], fields?: (manifest: any) => void) =>
    archiveOf(summed(change(members), fields));
  const outside = randomUUID();
  expect(
    await refusal(
      await rebuilt(
        (all) => all,
        (fields) => fields.secrets.push(`/../../../${outside}`),
      ),
      "a secret of another place",
    ),
  ).toMatch(/manifest of the archive is invalid/);
  const absent = await rebuilt(
    (all) => all.filter(({ header }) => header.name !== "secrets/live_token"),
    () => {},
  );
  expect(await refusal(absent, "a secret that is not there")).toMatch(/lacks secrets\/live_token/);
  const longLine = await rebuilt((all) =>
    all.map((one) => (one.header.name === "objects.jsonl" ? member("objects.jsonl", "x".repeat(200_000)) : one)),
  );
  expect(await refusal(longLine, "a line without an end")).toMatch(/too long|cannot be read/);
  // An archive that a check considers intact can be restored.
  const sly = await rebuilt((all) => [...all, member("objects/a/../../b", "x")]);
  writeFileSync(`${whole}.sly`, sly);
  expect(await failed("restore", `${whole}.sly`, "--check")).toContain("not a vodbox backup");

  // Detected by the header, before a byte is written.
  for (const name of ["vodbox.db", "objects/tenants/1/x"]) {
    const tar = pack();
    tar.entry({ name, size: 2 ** 50 }).on("error", () => {});
    const { value: head } = await tar[Symbol.asyncIterator]().next();
    tar.destroy();
    expect(await refusal(Buffer.concat([head as Buffer, Buffer.alloc(MEGABYTE)]), name)).toMatch(
      /has 1125899906842624 bytes, and .* has space for/,
    );
  }
});

const isObject = ({ header }: Member) => header.name.startsWith("objects/");
const within = (all: Member[]) => member(`${all.find(isObject)?.header.name}/below`, "x");

test("the backup of a newer vodbox is refused, with the required version", async () => {
  const folder = emptyFolder();
  const file = join(folder, "newer.db");
  writeFileSync(file, (members[0] as Member).bytes);
  const database = new Sqlite(file);
  database.exec("INSERT INTO _migrations VALUES ('9999_future.sql', 'x', 'x')");
  database.close();
  const changed = [member("vodbox.db", readFileSync(file)), ...members.slice(1)];
  const content = await archiveOf(
    summed(changed, (fields) => {
      fields.vodbox = "9.8.7";
      fields.schema = "9999_future.sql";
    }),
  );
  expect(await refusal(content, "newer")).toMatch(
    /a newer vodbox \(9\.8\.7\); restore it with that version or a later one\.$/,
  );
  writeFileSync(join(folder, "newer.tar"), content);
  expect(await failed("restore", join(folder, "newer.tar"), "--check")).toContain("newer vodbox (9.8.7)");
  const format = await archiveOf(summed(members, (fields) => Object.assign(fields, { format: 2 })));
  expect(await refusal(format, "another format")).toMatch(
    /a newer vodbox .*; restore it with that version or a later one/,
  );
  // Nor from a database that is newer than this program.
  const dataDir = join(folder, "data");
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, "vodbox.db"), readFileSync(file));
  expect(await failed("backup", join(folder, "a.tar"), "--data", dataDir)).toContain("newer than this vodbox");
  expect(existsSync(join(folder, "a.tar"))).toBe(false);
});

test("a restore that is killed leaves nothing that a server would take for complete; the same command starts over", async () => {
  const folder = emptyFolder();
  const { server, key, dataDir } = await filledServer(join(folder, "first"));
  for (let i = 0; i < 3; i++) await uploaded(server, key, { bytes: new Uint8Array(64 * MEGABYTE).fill(i) });
  server.child.kill("SIGTERM");
  await server.ended;
  const large = join(folder, "large.tar");
  await done("backup", large, "--objects", "--data", dataDir);

  const torn = join(folder, "torn");
  const restore = vodbox(["admin", "restore", large, "--data", torn]);
  await until("objects arrive", () => existsSync(join(torn, ".restoring/objects/tenants")));
  restore.child.kill("SIGKILL");
  expect((await restore.ended).signal).toBe("SIGKILL");
  expect(existsSync(join(torn, "vodbox.db"))).toBe(false);
  for (const args of [
    ["serve", "--port", "0"],
    ["admin", "tenant", "list"],
  ]) {
    const sentence = await refused([...args, "--data", torn], 1);
    expect(sentence).toContain("was interrupted");
    expect(sentence).toContain(`vodbox admin restore FILE --data ${torn}`);
  }
  expect(leftIn(torn)).toEqual([".restoring"]);
  await done("restore", large, "--data", torn);
  expect(leftIn(torn).sort()).toEqual(["objects", "secrets", "vodbox.db"]);
  expect(await failed("restore", large, "--data", torn)).toContain("is not empty");

  // Killed between its moves: before the last one the directory is incomplete, and with it complete.
  for (const moved of [["objects"], ["objects", "secrets"]]) {
    const dir = join(folder, moved.join("-"));
    mkdirSync(join(dir, ".restoring"), { recursive: true });
    for (const name of moved) mkdirSync(join(dir, name));
    writeFileSync(join(dir, "objects/half"), "x");
    expect(await refused(["serve", "--port", "0", "--data", dir], 1)).toContain("was interrupted");
    await done("restore", whole, "--data", dir);
    expect(existsSync(join(dir, "objects/half"))).toBe(false);
  }
  mkdirSync(join(torn, ".restoring/objects"), { recursive: true });
  const again = await ownServer(torn);
  expect((await again.as({ admin: server.admin }).listTenants()).body).toHaveLength(1);
  expect(leftIn(torn)).not.toContain(".restoring");
  expect((await cli("restore", large, "--check", "--json")).code).toBe(0);
});
