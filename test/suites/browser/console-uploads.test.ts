import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, startServer, tenantKey } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";
import { button, faultsOf, heading, link, signedIn } from "./console.ts";

const MIB = 2 ** 20;
let browser: Browser;
beforeAll(async () => {
  browser = await sharedBrowser();
});

/** A server of its own, with a tenant and a key. */
async function started(env = {}): Promise<{ server: RunningServer; key: string; dataDir: string }> {
  const dataDir = join(emptyFolder(), "data");
  const server = await startServer(dataDir, { env });
  const key = await tenantKey(server, ["assets:read", "assets:write"]);
  return { server, key, dataDir };
}

function fileOf(name: string, bytes: number, folder = emptyFolder()): string {
  const path = join(folder, name);
  writeFileSync(path, Buffer.alloc(bytes, name));
  return path;
}

/** Limits what the page sends, in bytes per second; -1: not. */
async function limit(page: Page, uploadThroughput: number): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: 20,
    downloadThroughput: -1,
    uploadThroughput,
  });
}

const choose = (page: Page, files: string | string[]) => page.locator("input[type=file]").setInputFiles(files);
const row = (page: Page, text: string) => page.locator(".transfer", { hasText: text });
const share = (page: Page) =>
  page
    .locator(".transfer progress")
    .first()
    .evaluate((bar: any) => bar.value as number);

test("the operator uploads to the tenant that is shown, and not before it is", async () => {
  const { server } = await started();
  const { admin } = server;
  await server.as({ admin }).createTenant({ name: "Other", slug: "other" });
  const seen = await signedIn(browser, server.base, admin);
  const { page } = seen;
  const loaded = Promise.withResolvers<void>();
  await page.route(/\/v1\/tenants\?/, async (route) => {
    await loaded.promise;
    await route.continue();
  });
  await link(page, "Uploads").click();
  await heading(page, "Uploads").waitFor();
  for (const name of ["Upload", "Choose files", "Choose a folder"])
    expect(await page.locator(`button:text-is("${name}")`).isDisabled(), name).toBe(true);
  loaded.resolve();
  await expect.poll(() => button(page, "Upload").isEnabled()).toBe(true);
  const shown = Number(await page.getByLabel("Tenant").inputValue());
  await choose(page, fileOf("Short film.mp4", 1000));
  const assets = async () => (await server.as({ admin }).listAssets()).body;
  await expect.poll(async () => (await assets())[0]?.input_status).toBe("uploaded");
  expect(await assets()).toMatchObject([{ title: "Short film", tenant_id: shown }]);
  expect(faultsOf(seen)).toEqual([]);
});

test("the server fetches a video from a URL, and a field says what is wrong with one", async () => {
  const { server, key } = await started({ VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" });
  const site = createServer((_, response) => response.end(Buffer.alloc(1000, "film"))).listen(0, "127.0.0.1");
  await once(site, "listening");
  atEnd(async () => {
    site.close();
  });
  const seen = await signedIn(browser, server.base, key);
  const { page } = seen;
  await link(page, "Uploads").click();
  await button(page, "From a URL").click();
  const address = page.getByLabel("URL of the file");
  await address.fill("ftp://example.com/film.mp4");
  await button(page, "Fetch").click();
  await page.getByRole("alert").waitFor();
  expect(await address.getAttribute("aria-invalid")).toBe("true");
  await address.fill(`http://127.0.0.1:${(site.address() as AddressInfo).port}/film.mp4`);
  await page.getByLabel("Title").fill("From elsewhere");
  await button(page, "Fetch").click();
  await heading(page, "From elsewhere").waitFor();
  const assets = async () => (await server.as(key).listAssets()).body;
  await expect
    .poll(assets, { timeout: 60_000 })
    .toMatchObject([{ title: "From elsewhere", input_status: "uploaded", source_bytes: 1000 }]);
  expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});

test("without a tenant the operator cannot upload, and the page says why", async () => {
  const server = await startServer(join(emptyFolder(), "data"));
  const seen = await signedIn(browser, server.base, server.admin);
  const { page } = seen;
  await link(page, "Uploads").click();
  await page.getByText("No tenants yet.").waitFor();
  expect(await page.locator('button:text-is("Choose files")').isDisabled()).toBe(true);
  expect(faultsOf(seen)).toEqual([]);
});

test("an upload that a reload interrupted is listed, and continues where it was", async () => {
  const { server, key } = await started();
  const relay = await startRelay();
  relay.lead(Number(new URL(server.base).port));
  const seen = await signedIn(browser, relay.base, key);
  const { page } = seen;
  await link(page, "Uploads").click();
  const path = fileOf("Long film.mp4", 24 * MIB);
  await limit(page, 4 * MIB);
  await choose(page, path);
  await expect.poll(() => share(page), { timeout: 60_000 }).toBeGreaterThan(0.5);
  // Leaving asks first.
  const asked = page.waitForEvent("dialog").then((dialog) => {
    const type = dialog.type();
    return dialog.accept().then(() => type);
  });
  await page.reload();
  expect(await asked).toBe("beforeunload");
  await page.getByRole("heading", { name: "Interrupted uploads" }).waitFor();
  await row(page, "Long film.mp4").getByRole("button", { name: "Choose the file again" }).waitFor();
  const resumedAt = await share(page);
  expect(resumedAt).toBeGreaterThan(0.3);

  // Another file is refused, with a reason.
  const wrong = page.waitForEvent("filechooser");
  await button(page, "Choose the file again").click();
  await (await wrong).setFiles(fileOf("Other.mp4", 10));
  await page.getByRole("alert").getByText("This is another file", { exact: false }).waitFor();

  await limit(page, -1);
  relay.reset();
  const chooser = page.waitForEvent("filechooser");
  await button(page, "Choose the file again").click();
  await (await chooser).setFiles(path);
  await link(page, "Long film.mp4").waitFor({ timeout: 60_000 });
  // Nothing that the server had, except what was under way.
  expect(relay.sent() / MIB).toBeLessThan(24 * (1 - resumedAt) + 2);
  const assets = (await server.as(key).listAssets()).body;
  expect(assets.map((one) => [one.original_filename, one.source_bytes])).toEqual([["Long film.mp4", 24 * MIB]]);
  await page.reload();
  await page.getByText("No uploads in this session.").waitFor();
  expect(await page.getByText("Interrupted uploads").count()).toBe(0);
  expect(faultsOf(seen)).toEqual([]);
});

nightly("an interrupted upload is discarded, and gone for good", async () => {
  const { server, key } = await started();
  const { page } = await signedIn(browser, server.base, key);
  await link(page, "Uploads").click();
  await limit(page, MIB);
  await choose(page, fileOf("Unwanted.mp4", 12 * MIB));
  await expect.poll(() => share(page), { timeout: 60_000 }).toBeGreaterThan(0.1);
  page.on("dialog", (dialog) => void dialog.accept());
  await page.reload();
  await button(page, "Discard").click();
  await row(page, "Unwanted.mp4").waitFor({ state: "detached" });
  expect((await server.as(key).listUploads({ status: "pending" })).body).toEqual([]);
});

nightly("on a slow network, speed and remaining time are shown, and the upload finishes", async () => {
  const { server, key } = await started();
  const { page } = await signedIn(browser, server.base, key);
  await link(page, "Uploads").click();
  await limit(page, 256 * 1024);
  await choose(page, fileOf("Slow.mp4", 2 * MIB));
  await row(page, "Slow.mp4")
    .getByText(/(1\d\d|2\d\d|3\d\d) [Kk]i?B\/s · Remaining 0:\d\d/)
    .waitFor({ timeout: 30_000 });
  await link(page, "Slow.mp4").waitFor({ timeout: 60_000 });
});

test("an upload continues after the server was killed and started again", async () => {
  const { server, key, dataDir } = await started();
  const { page } = await signedIn(browser, server.base, key);
  await link(page, "Uploads").click();
  await limit(page, 3 * MIB);
  await choose(page, fileOf("Restart.mp4", 16 * MIB));
  await expect.poll(() => share(page), { timeout: 60_000 }).toBeGreaterThan(0.2);
  server.child.kill("SIGKILL");
  await server.ended;
  const again = await startServer(dataDir, { args: ["--port", new URL(server.base).port] });
  await link(page, "Restart.mp4").waitFor({ timeout: 60_000 });
  const [asset] = (await again.as(key).listAssets()).body;
  expect([asset.source_bytes, asset.playback_status]).toEqual([16 * MIB, "processing"]);
});

test("folders are uploaded with their paths, without hidden files, when they are dropped or chosen", async () => {
  const { server, key } = await started();
  const { page } = await signedIn(browser, server.base, key);
  const root = join(emptyFolder(), "Trip");
  mkdirSync(join(root, "Day 1"), { recursive: true });
  for (const name of ["Day 1/a.mp4", "Day 1/b.mp4", ".hidden", "c.mp4"]) fileOf(name, 1000, root);
  const single = fileOf("single.mp4", 1000);
  await link(page, "Uploads").click();
  const { x = 0, y = 0 } = (await page.locator(".drop").boundingBox()) ?? {};
  const session = await page.context().newCDPSession(page);
  for (const type of ["dragEnter", "dragOver", "drop"] as const)
    await session.send("Input.dispatchDragEvent", {
      type,
      x: x + 20,
      y: y + 20,
      data: { items: [], files: [root, single], dragOperationsMask: 1 },
    });
  await page.getByText("4 of 4 files sent", { exact: false }).waitFor();
  const paths = async () => (await server.as(key).listAssets()).body.map((one) => one.relative_path).sort();
  const inFolder = ["Trip/Day 1/a.mp4", "Trip/Day 1/b.mp4", "Trip/c.mp4"];
  expect(await paths()).toEqual([...inFolder, null]);

  const chooser = page.waitForEvent("filechooser");
  await button(page, "Choose a folder").click();
  await (await chooser).setFiles(root);
  await page.getByText("7 of 7 files sent", { exact: false }).waitFor();
  expect(await paths()).toEqual([...inFolder.flatMap((path) => [path, path]), null]);
});

nightly("files of a collection's page go into that collection", async () => {
  const { server, key } = await started();
  const { page } = await signedIn(browser, server.base, key);
  await button(page, "New collection").click();
  await page.getByLabel("Name", { exact: true }).fill("Holiday");
  await button(page, "Create").click();
  await page.getByRole("treeitem", { name: "Holiday" }).waitFor();
  await page.waitForURL(/collection=/);
  await button(page, "Upload").click();
  await page.getByText("Into the collection “Holiday”").waitFor();
  await choose(page, fileOf("In it.mp4", 1000));
  await link(page, "In it.mp4").waitFor();
  const [collection] = (await server.as(key).listCollections()).body;
  expect(collection).toMatchObject({ name: "Holiday", asset_count: 1 });
});
