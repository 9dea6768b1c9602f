import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";

const MIB = 2 ** 20;

let server: RunningServer;
let browser: Browser;
let key: string;
let studio: string;
const folder = newFolder();
/** A page on another origin, with the clients' own packages as published. */
const pages = createServer((request, response) => {
  const script = { "/upchunk.js": "@mux/upchunk/dist/upchunk.js", "/tus.js": "tus-js-client/dist/tus.js" }[
    request.url ?? ""
  ];
  response.setHeader("content-type", script ? "text/javascript" : "text/html");
  response.end(
    script
      ? readFileSync(new URL(`../../../node_modules/${script}`, import.meta.url))
      : '<!doctype html><script src="/upchunk.js"></script><script src="/tus.js"></script>',
  );
});

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(folder), sharedBrowser()]);
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Studio", slug: "studio" });
  const body = { tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write"] };
  key = (await server.as({ admin }).createApiKey(body)).body.token;
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  studio = `http://localhost:${(pages.address() as AddressInfo).port}/`;
});
afterAll(async () => {
  pages.closeAllConnections();
  pages.close();
  server?.child.kill("SIGTERM");
  await server?.ended;
  removeFolder(folder);
});

const initiate = async (bytes: number) =>
  (await server.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: bytes })).body;

/** The content that the pages send, generated there and here alike: byte i is i modulo 251. */
const pattern = (bytes: number) => Buffer.from(Uint8Array.from({ length: bytes }, (_, at) => at % 251));
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function sourceOf(assetId: number): Promise<string> {
  const { body } = await server.as(key).getDownload(assetId);
  return sha256(new Uint8Array(await (await fetch(body.url)).arrayBuffer()));
}

async function completed(upload: { id: number; asset_id: number }, bytes: number) {
  const done = await server.as(key).completeUpload(upload.id, { bytes_received: bytes });
  expect(done.body).toMatchObject({ status: "completed", bytes_received: bytes });
  expect(await sourceOf(upload.asset_id)).toBe(sha256(pattern(bytes)));
}

test("a page of another origin puts a file to its URL, and reads the ETag", async () => {
  const upload = await initiate(1000);
  const { page, faults } = await visit(browser, studio);
  const seen = await page.evaluate(
    async ([url, length]) => {
      const bytes = Uint8Array.from({ length }, (_, at) => at % 251);
      const answer = await fetch(url, { method: "PUT", body: bytes, headers: { "content-type": "video/mp4" } });
      const refused = await fetch(`${url}x`, { method: "PUT", body: bytes });
      return {
        status: answer.status,
        etag: answer.headers.get("etag"),
        refused: [refused.status, await refused.text()],
      };
    },
    [upload.upload_url, 1000] as [string, number],
  );
  expect(seen).toMatchObject({ status: 200, etag: expect.stringMatching(/^".+"$/) });
  expect([seen.refused[0], JSON.parse(seen.refused[1] as string).code]).toEqual([403, "address_invalid"]);
  expect(faults.filter((fault) => !fault.includes("403"))).toEqual([]);
  await completed(upload, 1000);
});

const withUpChunk = (page: Page, endpoint: string, bytes: number) =>
  page.evaluate(
    ([url, length]) =>
      new Promise<{ error: string | null; chunks: number; failures: number }>((resolve) => {
        const file = new (globalThis as any).File([Uint8Array.from({ length }, (_, at) => at % 251)], "a.mp4", {
          type: "video/mp4",
        });
        let chunks = 0;
        let failures = 0;
        const upload = (globalThis as any).UpChunk.createUpload({
          endpoint: url,
          file,
          chunkSize: 1024,
          delayBeforeAttempt: 0.01,
          // 0 is the status of a broken connection in a page; by default upchunk aborts on it.
          retryCodes: [0, 408, 502, 503, 504],
        });
        upload.on("chunkSuccess", () => chunks++);
        upload.on("attemptFailure", () => failures++);
        upload.on("error", (event: any) => resolve({ error: event.detail.message, chunks, failures }));
        upload.on("success", () => resolve({ error: null, chunks, failures }));
      }),
    [endpoint, bytes] as [string, number],
  );

test("@mux/upchunk uploads unchanged, also over a connection that breaks", async () => {
  const bytes = 3.5 * MIB;
  const whole = await initiate(bytes);
  const first = await visit(browser, studio);
  expect(await withUpChunk(first.page, whole.upload_url, bytes)).toEqual({ error: null, chunks: 4, failures: 0 });
  await completed(whole, bytes);

  const torn = await initiate(bytes);
  const line = await startRelay();
  line.lead(Number(new URL(server.base).port));
  line.cutAfter(0.7 * MIB, 2);
  const second = await visit(browser, studio);
  const endpoint = torn.upload_url.replace(server.base, line.base);
  const seen = await withUpChunk(second.page, endpoint, bytes);
  expect([seen.error, line.cuts()]).toEqual([null, 2]);
  await completed(torn, bytes);
});

const withTus = (page: Page, endpoint: string, options: { bytes: number; abortAfter?: number; uploadUrl?: string }) =>
  page.evaluate(
    ([url, credential, { bytes, abortAfter, uploadUrl }]) =>
      new Promise<{ end: string; url: string | null; from: number }>((resolve) => {
        const { tus, File } = globalThis as any;
        const file = new File([Uint8Array.from({ length: bytes }, (_, at) => at % 251)], "a.mp4", {
          type: "video/mp4",
          lastModified: 1,
        });
        let from = -1;
        const upload = new tus.Upload(file, {
          endpoint: `${url}/api/v1/uploads/tus`,
          uploadUrl,
          headers: { "X-API-Key": credential },
          metadata: { filename: file.name, filetype: file.type, title: "By tus" },
          chunkSize: 1024 * 1024,
          retryDelays: [10, 10, 10, 10, 10],
          onError: (error: Error) => resolve({ end: String(error), url: upload.url, from }),
          onSuccess: () => resolve({ end: "success", url: upload.url, from }),
          onChunkComplete(size: number, accepted: number) {
            if (from === -1) from = accepted - size;
            if (abortAfter === undefined || accepted < abortAfter) return;
            upload.abort();
            resolve({ end: "aborted", url: upload.url, from });
          },
        });
        upload.findPreviousUploads().then((previous: unknown[]) => {
          if (previous.length > 0) upload.resumeFromPreviousUpload(previous[0]);
          upload.start();
        });
      }),
    [endpoint, key, options] as const,
  );

const idIn = (url: string | null) => Number(/\/tus\/(\d+)$/.exec(url ?? "")?.[1]);

test("tus-js-client uploads unchanged, over a connection that breaks, and resumes after the page was closed", async () => {
  const bytes = 3.5 * MIB;
  const line = await startRelay();
  line.lead(Number(new URL(server.base).port));
  line.cutAfter(0.7 * MIB, 2);
  const { page } = await visit(browser, studio);
  const made = await server.call("POST", "/api/v1/uploads/tus", {
    key,
    headers: { "tus-resumable": "1.0.0", "upload-length": String(bytes) },
  });
  // The server's URLs name itself; the relay's are the ones to use.
  const uploadUrl = (made.headers.get("location") as string).replace(server.base, line.base);
  const seen = await withTus(page, line.base, { bytes, uploadUrl });
  expect([seen.end, line.cuts()]).toEqual(["success", 2]);
  const session = await server.as(key).getUpload(idIn(seen.url));
  expect(session.body).toMatchObject({ status: "completed", bytes_received: bytes });
  expect(await sourceOf(session.body.asset_id)).toBe(sha256(pattern(bytes)));

  const first = await visit(browser, studio);
  const left = await withTus(first.page, server.base, { bytes: bytes + 1, abortAfter: 2 * MIB });
  expect(left.end).toBe("aborted");
  await first.page.reload();
  const resumed = await withTus(first.page, server.base, { bytes: bytes + 1 });
  expect(resumed).toEqual({ end: "success", url: left.url, from: 2 * MIB });
  const done = await server.as(key).getUpload(idIn(left.url));
  expect(await sourceOf(done.body.asset_id)).toBe(sha256(pattern(bytes + 1)));
});
