import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { bundled, startSite } from "#test/support/client-pages.ts";
import { importClient, installedClients } from "#test/support/clients.ts";
import { removeFolder } from "#test/support/folder.ts";
import { CORS_RULES, newBucket, s3Server } from "#test/support/s3-server.ts";

const BYTES = 6_000_001;
/** Byte i is i modulo 251. */
const content = Uint8Array.from({ length: BYTES }, (_, at) => at % 251);
const sumOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

let folder: string;
let library: any;
let app: TestApp;
let vodbox: any;

beforeAll(async () => {
  const s3 = await s3Server();
  const bucket = newBucket("client");
  await s3.bucket(bucket);
  await s3.cors(bucket, CORS_RULES);
  const { endpoint, region, accessKeyId, secretAccessKey } = s3;
  const keys = { s3_access_key_id: accessKeyId, s3_secret_access_key: secretAccessKey };
  app = await testApp({ storage: "s3", s3_endpoint: endpoint, s3_bucket: bucket, s3_region: region, ...keys });
  folder = await installedClients("client");
  library = await importClient(folder);
  const apiKey = await app.key((await app.tenant()).id);
  const fetch = (url: string, init: RequestInit) => app.opened.server.fetch(new Request(url, init));
  vodbox = new library.Vodbox({ baseUrl: "http://vodbox.test", apiKey, fetch });
});
afterAll(async () => {
  await app?.close();
  if (folder) removeFolder(folder);
});

async function expectStored(assetId: number): Promise<void> {
  const { url } = await vodbox.getDownload({ id: assetId });
  expect(sumOf(new Uint8Array(await (await fetch(url)).arrayBuffer()))).toBe(sumOf(content));
}
const initiate = () => vodbox.initiateUpload({ body: { filename: "a.mp4", bytes_expected: BYTES } });
const complete = (id: number) => vodbox.completeUpload({ id, body: { bytes_received: BYTES } });

test("an upload with a key is stored in the bucket", async () => {
  const { asset_id } = await vodbox.upload(new Blob([content]), { filename: "a.mp4" });
  await expectStored(asset_id);
});

test("a file is sent to a presigned URL as a whole, from Node.js and from a page", async () => {
  const first = await initiate();
  await library.uploadToUrl(first, new Blob([content]));
  expect((await complete(first.id)).status).toBe("completed");
  await expectStored(first.asset_id);

  const second = await initiate();
  const script = await bundled('export * from "@vodbox/client";', folder);
  const markup = '<!doctype html><link rel="icon" href="data:,"><script src="/client.js"></script>';
  const site = await startSite({ "/": markup, "/client.js": script });
  const browser = await sharedBrowser();
  try {
    const { page, faults } = await visit(browser, site.origin);
    const progress = await page.evaluate(
      async ([upload, length]) => {
        const seen: any[] = [];
        const file = new Blob([Uint8Array.from({ length }, (_, at) => at % 251)]);
        await (globalThis as any).program.uploadToUrl(upload, file, { onProgress: (each: any) => seen.push(each) });
        return seen;
      },
      [{ upload_url: second.upload_url, upload_headers: second.upload_headers }, BYTES] as const,
    );
    expect(progress.at(-1)).toMatchObject({ bytesSent: BYTES, secondsRemaining: 0 });
    expect(faults).toEqual([]);
  } finally {
    site.close();
  }
  expect((await complete(second.id)).status).toBe("completed");
  await expectStored(second.asset_id);
});
