import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { expect, test } from "vitest";
import { type AcquireLock, LockManager } from "#src/lib/base/lock-manager.ts";
import { type LocalStore, localStore } from "#storage/objects/local.ts";
import { type Appends, NoSuchMultipart, type ObjectStore, PartsMismatch } from "#storage/objects/store.ts";
import { until } from "#test/support/descendants.ts";
import { appendsContract } from "#test/support/storage/appends-contract.ts";
import { folder } from "#test/support/storage/database.ts";
import { multipartContract } from "#test/support/storage/multipart-contract.ts";
import { contentOf, storeContract } from "#test/support/storage/store-contract.ts";

const signing = { secret: "a secret of the tests", baseUrl: "http://localhost:8080" };

/** Locks as the supervisor keeps them, without the IPC channel. */
function turns(): AcquireLock {
  const waiting = new Map<number, { granted(): void; abort: AbortController }>();
  const keeper = new LockManager<null>({
    granted: (_, id) => waiting.get(id)?.granted(),
    contested: (_, id) => waiting.get(id)?.abort.abort(),
  });
  let count = 0;
  return (name, options) =>
    new Promise((resolve) => {
      const id = ++count;
      const abort = new AbortController();
      const turn = { contested: abort.signal, end: () => keeper.end(null, { id, name }) };
      waiting.set(id, { granted: () => resolve(turn), abort });
      keeper.ask(null, { id, name, ...options });
    });
}

/** Stores of this many processes over one directory. */
function family(count = 2, root = folder()) {
  const take = turns();
  return Array.from({ length: count }, (_, slot) =>
    localStore({ root, signing, storeProcesses: { slot, isFirst: slot === 0, take } }),
  );
}

/** One store whose calls alternate between the processes. */
function alternating(all: ObjectStore[]): ObjectStore & { appends: Appends } {
  let calls = 0;
  const turn = <T extends object>(each: T[]): T =>
    new Proxy(each[0] as T, {
      get: (first, name) => {
        if (typeof Reflect.get(first, name) !== "function") return Reflect.get(first, name);
        return (...args: unknown[]) => {
          const one = each[calls++ % each.length] as T;
          return (Reflect.get(one, name) as (...args: unknown[]) => unknown)(...args);
        };
      },
    });
  return turn(all.map((one) => ({ ...one, appends: turn(all.map(({ appends }) => appends as Appends)) })));
}

const opened = () => alternating(family());
storeContract("two processes on a folder", opened);
multipartContract("multipart of two processes on a folder", opened);
appendsContract("objects that two processes on a folder let grow", 300_000, async () => {
  const store = opened();
  return { store, appends: store.appends, again: () => store.appends };
});

test("a hanging writer of a part in one process yields to another, and never writes to the object", async () => {
  const [a, b] = family() as [LocalStore, LocalStore];
  const put = (store: LocalStore, uploadId: string, part: number, body: Readable) =>
    store.putPart("k", uploadId, part, body, { maxBytes: 4 });
  const text = (content: string) => Readable.from([Buffer.from(content)]);
  /** Holds its lock and waits for more bytes. */
  const hangAt = async (uploadId: string, why: typeof PartsMismatch | typeof NoSuchMultipart) => {
    const body = new PassThrough();
    body.write("XX");
    const ended = expect(put(a, uploadId, 2, body)).rejects.toThrow(why);
    await until("it is being read", () => body.readableFlowing);
    return { body, ended };
  };
  const uploadId = await a.createMultipart("k", { bytes: 8, partSize: 4 });
  const first = await put(a, uploadId, 1, text("aaaa"));
  const again = await hangAt(uploadId, PartsMismatch);
  const second = await put(b, uploadId, 2, text("bbbb"));
  await again.ended;
  again.body.end("XX");
  await b.completeMultipart("k", uploadId, [first, second]);
  expect(await contentOf(a, "k")).toBe("aaaabbbb");

  const other = await b.createMultipart("k", { bytes: 8, partSize: 4 });
  const hanging = await hangAt(other, NoSuchMultipart);
  await b.abortMultipart("k", other);
  await hanging.ended;
  hanging.body.end("XX");
  await expect(a.listParts("k", other)).rejects.toThrow(NoSuchMultipart);
  expect(await contentOf(b, "k")).toBe("aaaabbbb");
});

test("a restarted process deletes its own truncated files, and no other's", async () => {
  const root = folder();
  const temporary = join(root, "%tmp");
  mkdirSync(temporary, { recursive: true });
  for (const name of ["0-a", "1-a", "10-a"]) writeFileSync(join(temporary, name), "torn");
  const take = turns();
  const again = (slot: number, isFirst: boolean) =>
    localStore({ root, signing, storeProcesses: { slot, isFirst, take } });
  expect(await again(1, false).sweepTemporary()).toBe(1);
  expect(readdirSync(temporary).toSorted()).toEqual(["0-a", "10-a"]);
  const store = again(1, false);
  const body = new PassThrough();
  body.write("whole");
  const put = store.put("k", body, { maxBytes: 100 });
  expect(await again(2, false).sweepTemporary()).toBe(0);
  body.end();
  await put;
  expect(await contentOf(store, "k")).toBe("whole");
  expect(await again(0, true).sweepTemporary()).toBe(2);
  expect(existsSync(join(temporary, "10-a"))).toBe(false);
});
