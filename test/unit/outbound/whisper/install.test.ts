import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CATALOG } from "#platform/outbound/transcribe/whisper/catalog.ts";
import { ModelUnavailable } from "#platform/outbound/transcribe/whisper/download.ts";
import { type Installation, installModel } from "#platform/outbound/transcribe/whisper/install.ts";
import { installedModels, modelsDir, selectedModel } from "#platform/outbound/transcribe/whisper/store.ts";
import { emptyFolder } from "#test/support/folder.ts";

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
/** Something with a model's header. */
const modelOf = (bytes: number, fill: number) => {
  const content = Buffer.alloc(bytes, fill);
  const header = [0x67676d6c, 51_865, 1500, 64, 1, 1, 448, 64, 1, 1, 80, 1];
  for (const [at, value] of header.entries()) content.writeInt32LE(value, at * 4);
  return content;
};
const small = modelOf(300_000, 1);
const large = modelOf(600_000, 2);
const catalog = [
  { name: "small", bytes: small.length, sha256: sha256(small) },
  { name: "large", bytes: large.length, sha256: sha256(large) },
];

let server: Server;
let modelsUrl: string;
let answer: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
let ranges: (string | undefined)[];
let dataDir: string;
beforeAll(async () => {
  server = createServer((incoming, outgoing) => {
    ranges.push(incoming.headers.range);
    answer(incoming, outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  modelsUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/models/`;
});
afterAll(() => void server.close());
beforeEach(() => {
  ranges = [];
  dataDir = emptyFolder();
  answer = whole;
});

const contentOf = ({ url }: IncomingMessage) =>
  url === "/models/ggml-small.bin" ? small : url === "/models/ggml-large.bin" ? large : null;

/** A server with ranges. */
function whole(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const content = contentOf(incoming);
  if (!content) return void outgoing.writeHead(404).end();
  const from = Number(/^bytes=(\d+)-$/.exec(incoming.headers.range ?? "")?.[1] ?? 0);
  const headers = { "content-length": content.length - from };
  if (from === 0) return void outgoing.writeHead(200, headers).end(content);
  const range = `bytes ${from}-${content.length - 1}/${content.length}`;
  outgoing.writeHead(206, { ...headers, "content-range": range }).end(content.subarray(from));
}

/** Sends some bytes, after which `breakConnection` ends the connection. */
let breakConnection = () => {};
function breaking(incoming: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.writeHead(200, { "content-length": contentOf(incoming)?.length ?? 0 });
  outgoing.write(contentOf(incoming)?.subarray(0, 100_000));
  breakConnection = () => outgoing.destroy();
}

const install = (more: Partial<Installation> = {}) =>
  installModel({
    name: "small",
    dataDir,
    modelsUrl,
    minFreeBytes: 0,
    signal: new AbortController().signal,
    catalog,
    pauseMs: 1,
    ...more,
  });
const files = () => readdirSync(modelsDir(dataDir)).map((name) => name.replace(/[0-9a-f]{64}/, "SUM"));

describe("a download", () => {
  test("is verified, closed to others, and reports progress", async () => {
    const progress: number[] = [];
    const model = await install({ name: "ggml-small.bin", onProgress: (fraction) => void progress.push(fraction) });
    expect(model).toMatchObject({ name: "small", bytes: small.length, sha256: sha256(small) });
    expect(readFileSync(model.path).equals(small)).toBe(true);
    expect(statSync(model.path).mode & 0o777).toBe(0o600);
    expect(files()).toEqual(["small@SUM.bin"]);
    expect(progress.at(-1)).toBe(1);
    // It is there already.
    await install();
    expect(ranges).toHaveLength(1);
  });

  test("that is interrupted continues where it ended", async () => {
    answer = (incoming, outgoing) => (ranges.length === 1 ? breaking(incoming, outgoing) : whole(incoming, outgoing));
    const model = await install({ onProgress: () => breakConnection() });
    expect(readFileSync(model.path).equals(small)).toBe(true);
    expect(ranges).toEqual([undefined, expect.stringMatching(/^bytes=[1-9]\d*-$/)]);
  });

  test("that was stopped continues in the next run", async () => {
    const stop = new AbortController();
    answer = (incoming, outgoing) => {
      outgoing.writeHead(200, { "content-length": small.length });
      outgoing.write(contentOf(incoming)?.subarray(0, 100_000));
    };
    const stopped = install({ signal: stop.signal, onProgress: () => stop.abort() });
    await expect(stopped).rejects.toThrow();
    expect(files()).toEqual(["small@SUM.bin.part"]);
    answer = whole;
    ranges = [];
    await install();
    expect(ranges).toEqual([expect.stringMatching(/^bytes=[1-9]\d*-$/)]);
    expect(files()).toEqual(["small@SUM.bin"]);
  });

  test("begins again where the server has no ranges", async () => {
    answer = (incoming, outgoing) =>
      ranges.length === 1 ? breaking(incoming, outgoing) : void outgoing.writeHead(200).end(small);
    expect(readFileSync((await install({ onProgress: () => breakConnection() })).path).equals(small)).toBe(true);
  });

  test("begins again where an earlier run left something else", async () => {
    mkdirSync(modelsDir(dataDir));
    writeFileSync(join(modelsDir(dataDir), `small@${sha256(small)}.bin.part`), Buffer.alloc(1000, 9));
    expect(readFileSync((await install()).path).equals(small)).toBe(true);
    expect(ranges).toEqual(["bytes=1000-", undefined]);
  });

  test.each<[string, typeof answer, string]>([
    [
      "a wrong checksum",
      (_, outgoing) => void outgoing.end(Buffer.alloc(small.length)),
      "does not have the expected checksum",
    ],
    ["a longer file", (_, outgoing) => void outgoing.end(large), "it has another file"],
    ["no such file", (_, outgoing) => void outgoing.writeHead(404).end(), "answered 404"],
    ["a page instead", (_, outgoing) => void outgoing.end("<html>"), "ended after 6 of 300000 bytes"],
    ["a server that keeps failing", (_, outgoing) => void outgoing.writeHead(502).end(), "answered 502"],
    [
      "another part than the requested one",
      (_, outgoing) => void outgoing.writeHead(206, { "content-range": "bytes 5-9/10" }).end("56789"),
      "it has another file",
    ],
  ])("fails for %s, and leaves no model", async (_, respond, message) => {
    answer = respond;
    const error = await install().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelUnavailable);
    expect((error as Error).message).toContain(message);
    expect(installedModels(dataDir)).toEqual([]);
  });

  test("keeps the disk reserve free", async () => {
    await expect(install({ minFreeBytes: 2 ** 53 })).rejects.toThrow("not enough disk space");
    expect(ranges).toEqual([]);
  });

  test("of an unknown model is refused", async () => {
    await expect(install({ name: "huge" })).rejects.toThrow("There is no model huge");
  });
});

describe("a file", () => {
  const file = (content: Buffer) => {
    const path = join(dataDir, "given.bin");
    writeFileSync(path, content);
    return path;
  };

  test("of the catalog needs its checksum", async () => {
    await expect(install({ file: file(large) })).rejects.toThrow("is not the model small");
    expect(files()).toEqual([]);
    expect((await install({ file: file(small) })).sha256).toBe(sha256(small));
  });

  test("of one's own has a name of its own, and replaces the one before", async () => {
    await install({ name: "ours.v1", file: file(large) });
    const second = await install({ name: "ours.v1", file: file(small) });
    expect(installedModels(dataDir)).toEqual([second]);
  });

  test.each([
    ["../up", small, "at most 64 letters"],
    ["ours", Buffer.from("no model"), "is too short"],
    ["ours", Buffer.alloc(1000, 7), "is not a model"],
  ])("%s is refused", async (name, content, message) => {
    await expect(install({ name, file: file(content) })).rejects.toThrow(message);
    expect(installedModels(dataDir)).toEqual([]);
  });

  test.skipIf(process.geteuid?.() === 0)("that cannot be read is refused", async () => {
    const path = file(small);
    chmodSync(path, 0);
    await expect(install({ file: path })).rejects.toThrow("cannot be read");
  });
});

test("the largest model is used, or the one that the setting names", async () => {
  expect(selectedModel(dataDir, undefined)).toBeNull();
  await install({ name: "large" });
  await install({ name: "small" });
  expect(selectedModel(dataDir, undefined)?.name).toBe("large");
  expect(selectedModel(dataDir, "small")?.name).toBe("small");
  expect(selectedModel(dataDir, "ggml-small.bin")?.name).toBe("small");
  expect(selectedModel(dataDir, "tiny")).toBeNull();
});

test("the catalog has one entry for each name and checksum, by size", () => {
  expect(new Set(CATALOG.map(({ name }) => name)).size).toBe(CATALOG.length);
  expect(new Set(CATALOG.map((model) => model.sha256)).size).toBe(CATALOG.length);
  expect(CATALOG.every((model) => /^[0-9a-f]{64}$/.test(model.sha256))).toBe(true);
  expect(CATALOG.map(({ bytes }) => bytes)).toEqual(CATALOG.map(({ bytes }) => bytes).sort((a, b) => a - b));
});
