import dns from "node:dns";
import { once } from "node:events";
import { createServer, type RequestOptions, request } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { deletePrefix } from "#storage/objects/delete-prefix.ts";
import { partAppends } from "#storage/objects/part-appends.ts";
import { type S3StoreOptions, s3Store } from "#storage/objects/s3.ts";
import { NoSuchMultipart, StorageUnavailable } from "#storage/objects/store.ts";
import { amount } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { CORS_RULES, type S3Server, s3Server } from "#test/support/s3-server.ts";
import { appendsContract } from "#test/support/storage/appends-contract.ts";
import { multipartContract, PART } from "#test/support/storage/multipart-contract.ts";
import { smallObjectsContract } from "#test/support/storage/small-objects-contract.ts";
import { contentOf, storeContract } from "#test/support/storage/store-contract.ts";
import { addressContract } from "#test/support/storage/url-contract.ts";

const bucket = "vodbox-tests";
let server: S3Server;
beforeAll(async () => {
  server = await s3Server();
  await server.bucket(bucket);
});

/** A separate store for every test: a prefix of one bucket. */
let stores = 0;
const open = (more: Partial<S3StoreOptions> = {}) =>
  s3Store({ ...server, bucket, pathStyle: true, prefix: `store-${++stores}/`, backoffMs: 1, ...more });

storeContract("S3 store", () => open());
multipartContract("S3 multipart", () => open());
smallObjectsContract("S3 small objects", () => open());
appendsContract("S3, objects that grow", PART, async () => {
  const store = open();
  const folder = emptyFolder();
  const again = () => partAppends(store, folder, { partBytes: PART });
  return { store, appends: again(), again };
});
addressContract("S3 addresses", async () => ({
  store: open(),
  send: (request) => fetch(request),
  pass: (address) =>
    expect.poll(() => fetch(address).then(({ status }) => status), { timeout: 30_000, interval: 200 }).toBe(403),
}));

const KEYS = amount(1200, 2500);
test(`${KEYS} keys are listed and deleted beyond a page of a thousand, and those of other prefixes are kept`, async () => {
  const store = open();
  const beside = open();
  await beside.put("a/1", Buffer.from("x"));
  const keys = Array.from({ length: KEYS }, (_, i) => `a/${String(i).padStart(5, "0")} ü`);
  for (let i = 0; i < keys.length; i += 50)
    await Promise.all(keys.slice(i, i + 50).map((key) => store.put(key, Buffer.from("x"))));
  await store.put("b", Buffer.from("x"));
  const listed: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page = await store.list("a/", { cursor });
    listed.push(...page.objects.map(({ key }) => key));
    cursor = page.cursor;
  }
  expect(listed).toEqual(keys);
  expect(await deletePrefix(store, "a/")).toBe(KEYS);
  expect((await store.list("")).objects.map(({ key }) => key)).toEqual(["b"]);
  expect((await beside.list("")).objects.map(({ key }) => key)).toEqual(["a/1"]);
});

test("a stream larger than a part is sent in parts, is complete or absent, and leaves no parts", async () => {
  const store = open();
  const chunks = Array.from({ length: 400 }, (_, i) => Buffer.alloc(50_021, i));
  const whole = Buffer.concat(chunks);
  const asked: string[] = [];
  const confirm = async () => void asked.push(String(await store.head("k")));
  await store.put("k", Readable.from(chunks), { confirm });
  expect(asked).toEqual(["null"]);
  const got = await store.get("k");
  expect(whole.equals(await buffer(got?.body as Readable))).toBe(true);

  const refuse = async () => {
    throw new Error("too late");
  };
  await expect(store.put("k2", Readable.from(chunks), { confirm: refuse })).rejects.toThrow("too late");
  await expect(store.put("k2", Readable.from(chunks.slice(0, 2)), { confirm: refuse })).rejects.toThrow("too late");
  expect(await store.head("k2")).toBeNull();
  const left: string[] = [];
  for await (const { key } of store.listMultiparts("")) left.push(key);
  expect(left).toEqual([]);
});

test("an object too large for one copy is copied in parts", async () => {
  const store = open({ maxCopyBytes: PART });
  const whole = Buffer.concat([Buffer.alloc(PART, "a"), Buffer.alloc(PART, "b"), Buffer.from("end")]);
  await store.put("from ü", whole);
  expect(await store.copy("from ü", "to")).toMatchObject({ bytes: whole.length });
  const got = await store.get("to");
  expect(whole.equals(await buffer(got?.body as Readable))).toBe(true);
});

test("the bucket in the host name, and a separate public URL", async () => {
  // Names under localhost are this machine; not every resolver supports them.
  const { lookup } = dns;
  const known = (host: string, options: dns.LookupOptions, done: (...all: unknown[]) => void) => {
    if (!host.endsWith(".localhost")) return lookup(host, options, done);
    const address = "127.0.0.1";
    return options.all ? done(null, [{ address, family: 4 }]) : done(null, address, 4);
  };
  const spy = vi.spyOn(dns, "lookup").mockImplementation(known as typeof dns.lookup);
  onTestFinished(() => void spy.mockRestore());
  const endpoint = server.endpoint.replace("127.0.0.1", "s3.localhost");
  const store = open({ endpoint, pathStyle: false });
  await store.put("k", Buffer.from("by host"));
  const expiresAt = new Date(Date.now() + 60_000);
  const { url } = await store.signGet("k", { expiresAt });
  expect(new URL(url).hostname).toBe(`${bucket}.s3.localhost`);
  expect(await (await fetch(url)).text()).toBe("by host");
  const publicUrl = endpoint;
  const other = open({ publicUrl });
  expect(other.addressOrigin).toBe(publicUrl);
  await other.put("k", Buffer.from("public"));
  const address = (await other.signGet("k", { expiresAt })).url;
  expect(address.startsWith(`${publicUrl}/${bucket}/`)).toBe(true);
  expect(await (await fetch(address)).text()).toBe("public");
});

test("a presigned URL is valid for at most a week, and reports its expiry", async () => {
  const signed = await open().signGet("k", { expiresAt: new Date(Date.now() + 30 * 86_400_000) });
  expect(new URL(signed.url).searchParams.get("X-Amz-Expires")).toBe("604800");
  expect(signed.expiresAt.getTime()).toBeLessThanOrEqual(Date.now() + 604_800_000);
});

/** Responds as `refuse` says, else like the real server. */
async function between(refuse: (count: number, method: string) => string | null) {
  const methods: string[] = [];
  const proxy = createServer((incoming, response) => {
    methods.push(incoming.method as string);
    const fault = refuse(methods.length, incoming.method as string);
    if (fault === "cut") return void incoming.socket.destroy();
    if (fault) {
      incoming.resume();
      return void response.writeHead(503).end(`<Error><Code>${fault}</Code><Message>wait</Message></Error>`);
    }
    // With the host that was signed.
    const { method, headers, url } = incoming;
    const onward = request(`${server.endpoint}${url}`, { method, headers } as RequestOptions, (answer) => {
      response.writeHead(answer.statusCode as number, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(onward);
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void proxy.close());
  return { endpoint: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked: () => methods };
}

test("SlowDown, 503 and broken connections are retried, and reported when they do not end", async () => {
  const faults = ["SlowDown", "cut", "InternalError"];
  const { endpoint, asked } = await between((count) => faults[count - 1] ?? "SlowDown");
  const store = open({ endpoint });
  await expect(store.put("k", Buffer.from("x"))).rejects.toThrow(StorageUnavailable);
  expect(asked()).toEqual(Array(5).fill("PUT"));
  const torn = new Readable({ read() {} });
  torn.push("x");
  torn.push(null);
  await expect(store.putPart("k", "u", 1, torn, { maxBytes: 1, bytes: 1 })).rejects.toThrow(StorageUnavailable);
  // A stream cannot be sent again; afterwards the client checks whether the upload still exists.
  expect(asked().slice(5)).toEqual(["PUT", ...Array(5).fill("GET")]);
});

test("a part whose refusal is lost with the connection is still refused", async () => {
  const { endpoint, asked } = await between((_, method) => (method === "PUT" ? "cut" : null));
  const store = open({ endpoint });
  const uploadId = await store.createMultipart("k", { bytes: 1, partSize: 1 });
  const part = () => store.putPart("k", uploadId, 1, Readable.from([Buffer.from("x")]), { maxBytes: 1, bytes: 1 });
  await expect(part()).rejects.toThrow(StorageUnavailable);
  await store.abortMultipart("k", uploadId);
  await expect(part()).rejects.toThrow(NoSuchMultipart);
  expect(asked().slice(-2)).toEqual(["PUT", "GET"]);
});

const faultsOf = async (more: Partial<S3StoreOptions>, origin = "https://video.example", now = new Date()) =>
  (await open(more).examine({ origin, now })).filter(({ ok }) => !ok).map(({ check, detail }) => `${check}: ${detail}`);

test("examine() finds every misconfiguration", async () => {
  await server.cors(bucket, CORS_RULES);
  expect(await faultsOf({})).toEqual([]);
  expect(await faultsOf({ endpoint: "http://127.0.0.1:9" })).toEqual([expect.stringMatching(/^endpoint: .*reached/)]);
  expect(await faultsOf({ accessKeyId: "nobody" })).toEqual([expect.stringMatching(/^bucket: .*ACCESS_KEY_ID/)]);
  expect(await faultsOf({ secretAccessKey: "wrong" })).toEqual([expect.stringMatching(/^bucket: .*SECRET_ACCESS_KEY/)]);
  expect(await faultsOf({ bucket: "no-such-bucket" })).toEqual([
    expect.stringMatching(/^bucket: .*bucket does not exist/),
  ]);
  const late = new Date(Date.now() + 600_000);
  expect(await faultsOf({}, "https://x.example", late)).toEqual([
    expect.stringMatching(/^clock: .* (599|60[01]) s ahead/),
  ]);
  expect(await faultsOf({ publicUrl: "http://127.0.0.1:9" })).toEqual([
    expect.stringMatching(/^addresses: /),
    expect.stringMatching(/^cors: /),
  ]);
  await server.cors(bucket, null);
  expect(await faultsOf({})).toEqual([expect.stringMatching(/^cors: .*PUT from https:\/\/video.example.*ETag/)]);
  await server.cors(bucket, CORS_RULES.replace("*</AllowedOrigin>", "https://video.example</AllowedOrigin>"));
  expect(await faultsOf({})).toEqual([expect.stringMatching(/^cors: .*do not allow GET from any other site/)]);
});

test("check() reports faults", async () => {
  await expect(open({ secretAccessKey: "wrong" }).check()).rejects.toThrow("SignatureDoesNotMatch");
  expect(await contentOf(open(), "vodbox-check")).toBeNull();
});
