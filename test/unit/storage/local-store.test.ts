import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { UserError } from "#src/lib/base/errors.ts";
import { InvalidKey } from "#storage/objects/keys.ts";
import { localStore } from "#storage/objects/local.ts";
import { NoSuchMultipart, PartsMismatch, StorageFull } from "#storage/objects/store.ts";
import { folder } from "#test/support/storage/database.ts";
import { multipartContract } from "#test/support/storage/multipart-contract.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";
import { smallObjectsContract } from "#test/support/storage/small-objects-contract.ts";
import { contentOf, storeContract } from "#test/support/storage/store-contract.ts";

const signing = { secret: "a secret of the tests", baseUrl: "http://localhost:8080" };
const storeAt = (root: string, minFreeBytes?: number) =>
  localStore({ root, signing, ...(minFreeBytes === undefined ? {} : { minFreeBytes }) });

storeContract("local store", () => storeAt(folder()));
multipartContract("local multipart", () => storeAt(folder()));
smallObjectsContract("local small objects", () => storeAt(folder()));

test("uploaded parts that are not listed are not part of the object", async () => {
  const store = storeAt(folder());
  const uploadId = await store.createMultipart("k", { bytes: 9, partSize: 4 });
  const parts = [];
  for (const [index, text] of ["aaaa", "bbbb", "c"].entries())
    parts.push(await store.putPart("k", uploadId, index + 1, Readable.from([Buffer.from(text)]), { maxBytes: 4 }));
  await store.completeMultipart("k", uploadId, parts.slice(0, 2));
  expect(await contentOf(store, "k")).toBe("aaaabbbb");
});

test("parts outlive the process, remains of an abort or a completion do not", async () => {
  const root = folder();
  const before = storeAt(root);
  const options = { bytes: 8, partSize: 4 };
  const uploadId = await before.createMultipart("a/k", options);
  const part = await before.putPart("a/k", uploadId, 1, Readable.from([Buffer.from("half")]), { maxBytes: 4 });
  const torn = await before.createMultipart("b", options);
  rmSync(join(root, "%parts", torn, "plan"));
  const ended = await before.createMultipart("c", options);
  rmSync(join(root, "%parts", ended, "data"));

  const store = storeAt(root);
  expect(await store.sweepTemporary()).toBe(2);
  expect(readdirSync(join(root, "%parts"))).toEqual([uploadId]);
  expect(await store.listParts("a/k", uploadId)).toEqual([part]);
  await store.completeMultipart("a/k", uploadId, [part]);
  expect(await contentOf(store, "a/k")).toBe("half");
  expect(readdirSync(join(root, "%parts"))).toEqual([]);
});

test("of two writers of a part the later wins, and neither writes to the completed object", async () => {
  const store = storeAt(folder());
  const uploadId = await store.createMultipart("k", { bytes: 100_000, partSize: 100_000 });
  const hanging = new PassThrough();
  hanging.write(Buffer.alloc(50_000, "x"));
  const earlier = store.putPart("k", uploadId, 1, hanging, { maxBytes: 100_000 });
  const later = store.putPart("k", uploadId, 1, Readable.from([Buffer.from("later")]), { maxBytes: 100_000 });
  await expect(earlier).rejects.toThrow("uploaded again");
  const part = await later;

  const again = new PassThrough();
  again.write(Buffer.alloc(50_000, "y"));
  const writing = store.putPart("k", uploadId, 1, again, { maxBytes: 100_000 });
  writing.catch(() => {});
  // The repeat has begun: the part that it overwrites is no longer complete.
  await expect.poll(() => store.listParts("k", uploadId).then((parts) => parts.length), { interval: 1 }).toBe(0);
  await expect(store.completeMultipart("k", uploadId, [part])).rejects.toThrow(PartsMismatch);
  again.end();
  const whole = await writing;
  await store.completeMultipart("k", uploadId, [whole]);
  expect((await contentOf(store, "k"))?.length).toBe(50_000);
});

test("an abort ends active writers", async () => {
  const store = storeAt(folder());
  const uploadId = await store.createMultipart("k", { bytes: 10, partSize: 10 });
  const hanging = new PassThrough();
  hanging.write("half");
  const writing = store.putPart("k", uploadId, 1, hanging, { maxBytes: 10 });
  const ended = expect(writing).rejects.toThrow(NoSuchMultipart);
  await store.abortMultipart("k", uploadId);
  await ended;
});

test("a full disk stores no part and keeps earlier ones", async (context) => {
  const disk = smallDisk(context, 8);
  const store = storeAt(disk.path);
  const uploadId = await store.createMultipart("k", { bytes: 12_000_000, partSize: 3_000_000 });
  const put = (partNumber: number) =>
    store.putPart("k", uploadId, partNumber, Readable.from([Buffer.alloc(3_000_000)]), { maxBytes: 3_000_000 });
  await put(1);
  await put(2);
  await expect(put(3)).rejects.toThrow(StorageFull);
  expect(await store.listParts("k", uploadId)).toHaveLength(2);
});

test("kill -9 during a part keeps the complete parts", async () => {
  const root = folder();
  const program = `
    import { localStore } from ${JSON.stringify(new URL("../../../storage/objects/local.ts", import.meta.url).href)};
    import { Readable } from "node:stream";
    const store = localStore({ root: process.argv[1], signing: { secret: "s", baseUrl: "http://x" } });
    const partSize = 50_000_000;
    const uploadId = await store.createMultipart("a/k", { bytes: 3 * partSize, partSize });
    const put = (number, body) => store.putPart("a/k", uploadId, number, Readable.from(body), { maxBytes: partSize });
    await put(1, [Buffer.alloc(partSize, "a")]);
    await put(2, [Buffer.alloc(1000, "b")]);
    async function* body() {
      for (let i = 0; i < 50; i++) {
        yield Buffer.alloc(1_000_000, "c");
        if (i === 20) process.stdout.write(uploadId);
        // The rest never comes.
        if (i > 20) await new Promise(() => {});
      }
    }
    // Keeps the process.
    setInterval(() => {}, 1_000_000);
    await put(2, body());`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, root], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [uploadId] = (await once(child.stdout, "data")).map(String) as [string];
  child.kill("SIGKILL");
  await once(child, "close");

  const store = storeAt(root);
  await store.sweepTemporary();
  const parts = await store.listParts("a/k", uploadId);
  expect(parts.map(({ partNumber, bytes }) => [partNumber, bytes])).toEqual([[1, 50_000_000]]);
  parts.push(await store.putPart("a/k", uploadId, 2, Readable.from([Buffer.from("end")]), { maxBytes: 10 }));
  expect(await store.completeMultipart("a/k", uploadId, parts)).toMatchObject({ bytes: 50_000_003 });
  const tail = await store.get("a/k", { start: 49_999_999, end: 50_000_002 });
  expect(await text(tail?.body as Readable)).toBe("aend");
});

test("kill -9 during a put keeps the old object, and the next start deletes the rest", async () => {
  const root = folder();
  const store = storeAt(root);
  await store.put("a/k", Buffer.from("old"));
  const program = `
    import { localStore } from ${JSON.stringify(new URL("../../../storage/objects/local.ts", import.meta.url).href)};
    import { PassThrough, Readable } from "node:stream";
    const store = localStore({ root: process.argv[1], signing: { secret: "s", baseUrl: "http://x" } });
    async function* body() {
      for (let i = 0; ; i++) {
        yield Buffer.alloc(1_000_000);
        if (i === 20) process.stdout.write("half way");
      }
    }
    await store.put("a/k", Readable.from(body()));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, root], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "close");

  expect(await contentOf(store, "a/k")).toBe("old");
  expect(readdirSync(join(root, "%tmp"))).toHaveLength(1);
  expect((await store.list("")).objects.map((one) => one.key)).toEqual(["a/k"]);
  expect(await store.sweepTemporary()).toBe(1);
  expect(readdirSync(join(root, "%tmp"))).toEqual([]);
  expect(readdirSync(join(root, "a"))).toEqual(["k"]);
});

test("a full disk throws StorageFull and keeps what was there", async (context) => {
  const disk = smallDisk(context, 8);
  const store = storeAt(disk.path);
  await store.put("k", Buffer.from("old"));
  const body = Readable.from(Array.from({ length: 12 }, () => Buffer.alloc(1_000_000)));
  await expect(store.put("k", body)).rejects.toThrow(StorageFull);
  await expect(store.put("k", Buffer.alloc(12_000_000))).rejects.toThrow(StorageFull);
  expect(await contentOf(store, "k")).toBe("old");
  expect(readdirSync(disk.path)).toEqual(["%tmp", "k"]);
  expect(readdirSync(join(disk.path, "%tmp"))).toEqual([]);
  await store.put("k", Buffer.alloc(2_000_000));
});

test("the reserve stays free", async (context) => {
  const disk = smallDisk(context, 4);
  await expect(storeAt(disk.path, 5_000_000).put("k", Buffer.from("x"))).rejects.toThrow(StorageFull);
  await storeAt(disk.path, 2_000_000).put("k", Buffer.from("x"));
});

test("directories are deleted with their last object, the root stays", async () => {
  const root = folder();
  const store = storeAt(root);
  await store.put("a/b/c", Buffer.from("x"));
  await store.put("a/d", Buffer.from("x"));
  await store.delete("a/b/c");
  expect(readdirSync(join(root, "a"))).toEqual(["d"]);
  await store.delete("a/d");
  expect(readdirSync(root)).toEqual(["%tmp"]);
});

test("a key cannot be both an object and a directory of others", async () => {
  const store = storeAt(folder());
  await store.put("a/b", Buffer.from("x"));
  await expect(store.put("a", Buffer.from("x"))).rejects.toThrow(InvalidKey);
  await expect(store.put("a/b/c", Buffer.from("x"))).rejects.toThrow(InvalidKey);
  await expect(store.put("a/b/c/d", Buffer.from("x"))).rejects.toThrow(InvalidKey);
  expect((await store.list("")).objects.map((one) => one.key)).toEqual(["a/b"]);
});

test("symbolic links out of the root are not followed", async () => {
  const outside = folder();
  writeFileSync(join(outside, "secret"), "secret");
  mkdirSync(join(outside, "empty"));
  const root = folder();
  symlinkSync(outside, join(root, "link"));
  symlinkSync(join(outside, "secret"), join(root, "file"));
  const store = storeAt(root);
  for (const key of ["link/secret", "file"]) {
    expect(await store.get(key)).toBeNull();
    expect(await store.head(key)).toBeNull();
    await expect(store.copy(key, "copied")).rejects.toThrow();
  }
  await store.delete("link/secret");
  await store.delete("link/empty/none");
  for (const key of ["link/new", "link/empty/new", "link/made/new"]) {
    await expect(store.put(key, Buffer.from("x"))).rejects.toThrow(InvalidKey);
  }
  expect((await store.list("")).objects).toEqual([]);
  expect((await store.list("link/")).objects).toEqual([]);
  expect(readdirSync(outside).sort()).toEqual(["empty", "secret"]);
});

test("an object that was truncated externally is an error, not an end", async () => {
  const store = storeAt(folder());
  await store.put("k", Buffer.alloc(3_000_000));
  const got = await store.get("k");
  truncateSync(store.localPath("k") as string, 1_000_000);
  await expect(text(got?.body as Readable)).rejects.toThrow("shorter");
});

test("check() reports faults of the directory", async () => {
  const root = folder();
  const store = storeAt(join(root, "store"));
  writeFileSync(join(root, "other"), "");
  expect(existsSync(join(root, "store"))).toBe(true);
  symlinkSync(join(root, "other"), join(root, "store", "vodbox-check"));
  mkdirSync(join(root, "full"));
  const blocked = storeAt(join(root, "full"));
  mkdirSync(join(root, "full", "vodbox-check"));
  writeFileSync(join(root, "full", "vodbox-check", "x"), "");
  await store.check();
  await expect(blocked.check()).rejects.toThrow(UserError);
});
