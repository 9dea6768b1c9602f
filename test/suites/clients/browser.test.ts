import { createHash } from "node:crypto";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { bundled, startSite } from "#test/support/client-pages.ts";
import { installedClients } from "#test/support/clients.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";

const MIB = 2 ** 20;

let folder: string;
let data: string;
let server: RunningServer;
let browser: Browser;
let site: Awaited<ReturnType<typeof startSite>>;
let key: string;
beforeAll(async () => {
  data = newFolder();
  [folder, server, browser] = await Promise.all([installedClients("client"), startServer(data), sharedBrowser()]);
  const script = await bundled('export * from "@vodbox/client";', folder);
  site = await startSite({
    "/": '<!doctype html><link rel="icon" href="data:,"><script src="/client.js"></script>',
    "/client.js": script,
  });
  const { admin, as } = server;
  const tenant = await as({ admin }).createTenant({ name: "Client", slug: "client" });
  const body = { tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write"] };
  key = (await as({ admin }).createApiKey(body)).body.token;
});
afterAll(async () => {
  site?.close();
  server?.child.kill("SIGTERM");
  await server?.ended;
  for (const each of [folder, data]) removeFolder(each);
});

/** The content that the pages send, generated there and here alike: byte i is i modulo 251. */
const pattern = (bytes: number) => Buffer.from(Uint8Array.from({ length: bytes }, (_, at) => at % 251));
const sumOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

type Seen = { result: { upload_id: number; asset_id: number } | null; error: string | null; progress: any[] };
/** Uploads a file of the page; ends when the page reloads. */
const upload = (page: Page, baseUrl: string, bytes: number): Promise<Seen> =>
  page.evaluate(
    async ([url, apiKey, length]) => {
      const { program, File } = globalThis as any;
      const content = Uint8Array.from({ length }, (_, at) => at % 251);
      const file = new File([content], "Größe.mp4", { type: "video/mp4", lastModified: 1 });
      const progress: any[] = [];
      const vodbox = new program.Vodbox({ baseUrl: url, apiKey });
      try {
        const onProgress = (each: any) => progress.push(each);
        const result = await vodbox.upload(file, { title: "Größe", captions: [], onProgress });
        return { result, error: null, progress };
      } catch (error: any) {
        return { result: null, error: `${error.name} ${error.code}`, progress };
      }
    },
    [baseUrl, key, bytes] as const,
  );

async function expectStored({ result }: Seen, bytes: number): Promise<void> {
  const { body } = await server.as(key).getDownload(result?.asset_id);
  expect(sumOf(new Uint8Array(await (await fetch(body.url)).arrayBuffer()))).toBe(sumOf(pattern(bytes)));
}

test("a page of another origin uploads a file with progress", async () => {
  const bytes = 10 * MIB + 1;
  const { page, faults } = await visit(browser, site.origin);
  const seen = await upload(page, server.base, bytes);
  expect([seen.error, faults]).toEqual([null, []]);
  await expectStored(seen, bytes);
  const { body } = await server.as(key).getAsset(seen.result?.asset_id);
  expect(body).toMatchObject({ title: "Größe", original_filename: "Größe.mp4" });
  expect(seen.progress.at(-1)).toMatchObject({ bytesSent: bytes, bytesTotal: bytes, secondsRemaining: 0 });
  expect(await page.evaluate(() => (globalThis as any).localStorage.length)).toBe(0);
});

test("a page that was reloaded continues the upload of the same file", async () => {
  const bytes = 24 * MIB;
  const relay = await startRelay();
  relay.lead(Number(new URL(server.base).port));
  const { page } = await visit(browser, site.origin);
  const paused = relay.holdAfter(12 * MIB);
  const interrupted = upload(page, relay.base, bytes).catch(() => null);
  await paused;
  await page.reload();
  await interrupted;
  const before = relay.sent();
  relay.reset();
  const seen = await upload(page, relay.base, bytes);
  expect(seen.error).toBe(null);
  await expectStored(seen, bytes);
  expect(seen.progress[0].bytesSent).toBeGreaterThan(4 * MIB);
  expect(before + relay.sent() - bytes).toBeLessThan(9 * MIB);
});

test("connections that break are continued, and a refusal is reported", async () => {
  const bytes = 6 * MIB;
  const relay = await startRelay();
  relay.lead(Number(new URL(server.base).port));
  relay.cutAfter(1.5 * MIB, 2);
  const { page } = await visit(browser, site.origin);
  const seen = await upload(page, relay.base, bytes);
  expect([seen.error, relay.cuts()]).toEqual([null, 2]);
  await expectStored(seen, bytes);
  expect((await upload(page, server.base, 0)).error).toBe("VodboxError validation_failed");
});

/** As a page does that received the upload from its own server; ends when the page reloads. */
const toUrl = (page: Page, url: string, bytes: number): Promise<{ error: string | null; progress: any[] }> =>
  page.evaluate(
    async ([upload_url, length]) => {
      const { program, File } = globalThis as any;
      const file = new File([Uint8Array.from({ length }, (_, at) => at % 251)], "a.mp4");
      const progress: any[] = [];
      try {
        await program.uploadToUrl({ upload_url }, file, { onProgress: (each: any) => progress.push(each) });
        return { error: null, progress };
      } catch (error: any) {
        return { error: error.code, progress };
      }
    },
    [url, bytes] as const,
  );

test("a page without a key sends a file to the URL of an upload, over broken connections, and continues after a reload", async () => {
  const bytes = 24 * MIB;
  const relay = await startRelay();
  relay.lead(Number(new URL(server.base).port));
  const body = { filename: "a.mp4", bytes_expected: bytes };
  const upload = (await server.as(key).initiateUpload(body)).body;
  const url = upload.upload_url.replace(server.base, relay.base);
  const { page } = await visit(browser, site.origin);
  expect((await toUrl(page, `${url}x`, bytes)).error).toBe("address_invalid");
  relay.cutAfter(1.5 * MIB, 2);
  const paused = relay.holdAfter(12 * MIB);
  const interrupted = toUrl(page, url, bytes).catch(() => null);
  await paused;
  expect(relay.cuts()).toBe(2);
  await page.reload();
  await interrupted;
  relay.reset();
  const seen = await toUrl(page, url, bytes);
  expect([seen.error, seen.progress[0].bytesSent > 4 * MIB, seen.progress.at(-1).bytesSent]).toEqual([
    null,
    true,
    bytes,
  ]);
  const done = await server.as(key).completeUpload(upload.id, { bytes_received: bytes });
  expect(done.status, done.text).toBe(200);
  await expectStored({ result: { upload_id: upload.id, asset_id: upload.asset_id }, error: null, progress: [] }, bytes);
});
