import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, untilPlayed, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf, type RunningServer, startServer } from "#test/support/process.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signedIn, signIn } from "./console.ts";

const password = "correct horse battery staple";
let platform: Platform;
let browser: Browser;
let clip: string;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  clip = join(emptyFolder(), "Holiday film.mp4");
  writeFileSync(clip, platform.clip);
});
afterAll(async () => {
  await platform?.close();
});

/** Uploads a file on the page Uploads and waits until it plays. */
async function upload(page: Page, file: string): Promise<void> {
  await link(page, "Uploads").click();
  await page.locator("input[type=file]").setInputFiles(file);
  await page.locator(".transfer", { hasText: "Ready" }).waitFor({ timeout: 60_000 });
}

test("from an empty folder to a playing video, in the browser alone, within a minute", async () => {
  const server = await startServer(join(emptyFolder(), "data"), { args: ["--workers", "1"] });
  const [, address = ""] = await lineOf(server, /^set up in a browser, once, within an hour: (\S+)$/m);
  const from = performance.now();
  const seen = await visit(browser, address);
  const { page } = seen;
  await page.getByLabel("Name").fill("Acme");
  await page.getByLabel("Email").fill("ann@example.com");
  await page.getByLabel("Password").fill(password);
  await button(page, "Create").click();
  await heading(page, "Assets").waitFor();
  expect(await page.getByRole("navigation").getByRole("link").allTextContents()).not.toContain("Tenants");
  await upload(page, clip);
  await link(page, "Holiday film.mp4").click();
  await button(page, "Copy embed code").click();
  expect(await page.getByLabel("Embed code").inputValue()).toMatch(/^<iframe src="http.*\/embed\/s\/\w{22}"/);
  const player = page.frameLocator("iframe").owner();
  const frame = await (await player.elementHandle())?.contentFrame();
  if (!frame) throw new Error("There is no player");
  await frame.locator("media-play-button").first().click();
  await untilPlayed(frame, 1);
  expect(performance.now() - from).toBeLessThan(60_000);
  await link(page, "Assets").click();
  await page.locator(".card img").waitFor();
  expect(
    await page.locator(".card img").evaluate((image: any) => image.decode().then(() => image.naturalWidth)),
  ).toBeGreaterThan(0);
  expect(faultsOf(seen)).toEqual([]);
  expect(new Set(seen.requests.map(({ origin }) => origin))).toEqual(new Set([server.base]));

  // The address worked once; the user can sign in again.
  await button(page, "Sign out").click();
  await page.goto(address);
  await page.getByLabel("Name").fill("Second");
  await page.getByLabel("Email").fill("eve@example.com");
  await page.getByLabel("Password").fill(password);
  await button(page, "Create").click();
  await page.getByRole("alert").getByText("already used or expired").waitFor();
  await page.goto(`${server.base}/`);
  await page.getByLabel("Email").fill("ann@example.com");
  await page.getByLabel("Password").fill(password);
  await button(page, "Sign in").click();
  await page.getByText("Holiday film").waitFor();
});

test("a wrong credential says what the API said, with the id of the request", async () => {
  const { page } = await visit(browser, `${platform.base}/console`);
  await page.getByLabel("Admin token or API key").fill("wrong");
  await button(page, "Sign in").click();
  const alert = page.getByRole("alert");
  await alert.getByText("These credentials are wrong, revoked or expired.").waitFor();
  expect(await alert.textContent()).toMatch(/Request req_[\w-]+/);
});

test("the operator creates a tenant and a key, which signs in to that tenant alone", async () => {
  const seen = await signedIn(browser, platform.base, platform.admin);
  const { page } = seen;
  await link(page, "Tenants").click();
  await button(page, "New tenant").click();
  await page.getByLabel("Name").fill("Second");
  await page.getByLabel("Slug").fill("web");
  await button(page, "Create").click();
  await page.getByRole("alert").getByText("slug: web is taken").waitFor();
  // The field says it too.
  const described = (await page.getByLabel("Slug").getAttribute("aria-describedby")) ?? "";
  expect(await page.getByLabel("Slug").getAttribute("aria-invalid")).toBe("true");
  expect(await page.locator(`[id="${described}"]`).getAttribute("data-text")).toBe("is taken");
  await button(page, "Cancel").click();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await button(page, "New tenant").click();
  await page.getByLabel("Name").fill("Second");
  await page.getByLabel("Slug").fill("second");
  await button(page, "Create").click();
  await page.getByRole("cell", { name: "second", exact: true }).waitFor();
  await link(page, "API keys").click();
  await button(page, "New API key").click();
  await page.getByLabel("Name").fill("Its key");
  await page.getByLabel("Tenant").selectOption({ label: "Second" });
  await page.getByLabel("api_keys:read").check();
  await button(page, "Create").click();
  const token = (await page.locator(".notice code").textContent()) ?? "";
  expect(token).toMatch(/^svc_/);
  await page.reload();
  await page.getByRole("row", { name: /^Its key/ }).waitFor();
  expect(await page.content()).not.toContain(token);
  await button(page, "Sign out").click();
  await signIn(page, token);
  await link(page, "API keys").click();
  await page.getByRole("row", { name: /^Its key/ }).waitFor();
  // Header and one key: nothing of the other tenant.
  expect(await page.getByRole("row").count()).toBe(2);
  expect(await button(page, "New API key").count()).toBe(0);
  // Slug is taken, once.
  expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});

test("a page that is open while the server is killed continues by itself", async () => {
  const dataDir = join(emptyFolder(), "data");
  let server: RunningServer = await startServer(dataDir);
  const { port } = new URL(server.base);
  const { page } = await visit(browser, `${server.base}/console`);
  await signIn(page, server.admin);
  await link(page, "Jobs").click();
  await heading(page, "Jobs").waitFor();
  server.child.kill("SIGKILL");
  await server.ended;
  await page.getByText("The server does not respond. Trying again…").waitFor();
  server = await startServer(dataDir, { args: ["--port", port] });
  await page.getByText("The server does not respond. Trying again…").waitFor({ state: "hidden" });
  // The session survived, and what happens now arrives.
  const tenant = await server.as({ admin: server.admin }).createTenant({ name: "T", slug: "t" });
  const body = { tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write"] };
  const { token } = (await server.as({ admin: server.admin }).createApiKey(body)).body;
  const started = await server.as(token).initiateUpload({ filename: "a.mp4", bytes_expected: 3 });
  await server.call("PUT", started.body.upload_url, { raw: "abc" });
  await server.as(token).completeUpload(started.body.id, { bytes_received: 3 });
  await page.getByRole("cell", { name: "Queued", exact: true }).waitFor();
});

test("a session that ends leads to the sign-in, in every tab", async () => {
  const { page } = await signedIn(browser, platform.base, platform.admin);
  const second = await page.context().newPage();
  await second.goto(`${platform.base}/console/jobs`);
  await heading(second, "Jobs").waitFor();
  await button(page, "Sign out").click();
  await button(page, "Sign in").waitFor();
  await second.getByText("Your session has ended. Sign in again.").waitFor();
});

nightly("in German, on a phone, by keyboard", async () => {
  const { page } = await visit(browser, `${platform.base}/console`, {
    locale: "de-DE",
    viewport: { width: 390, height: 800 },
  });
  await page.getByLabel("Admin-Token oder API-Schlüssel").fill(platform.key);
  await page.keyboard.press("Enter");
  await heading(page, "Videos").waitFor();
  expect(await page.locator("html").getAttribute("lang")).toBe("de");
  const jobs = link(page, "Aufträge");
  expect(await jobs.isVisible()).toBe(false);
  await button(page, "Menü").focus();
  await page.keyboard.press("Enter");
  expect(await jobs.isVisible()).toBe(true);
  await jobs.focus();
  await page.keyboard.press("Enter");
  await heading(page, "Aufträge").waitFor();
  expect(await jobs.isVisible()).toBe(false);
  const width = await page.evaluate("document.documentElement.scrollWidth");
  expect(width).toBeLessThanOrEqual(390);
  await page.reload();
  await heading(page, "Aufträge").waitFor();
  expect(await heading(page, "Aufträge").isVisible()).toBe(true);
});

test("axe finds nothing on any page, light and dark, wide and narrow", async () => {
  const pages = {
    assets: "Assets",
    uploads: "Uploads",
    jobs: "Jobs",
    webhooks: "Webhooks",
    live: "Live",
    tenants: "Tenants",
    analytics: "Analytics",
    usage: "Usage",
    system: "System",
    keys: "API keys",
    "tenants/1": "Browser",
    "system?view=backup": "Backup",
    "system?view=settings": "Settings",
    "system?view=log": "Log",
    // All components in all of their states.
    design: "Design",
  };
  for (const { colorScheme, width } of APPEARANCES) {
    const { page } = await visit(browser, `${platform.base}/console`, {
      colorScheme,
      viewport: { width, height: 900 },
      bypassCSP: true,
    });
    await button(page, "Sign in").waitFor();
    expect(await axeFaults(page), "sign-in").toEqual([]);
    await signIn(page, platform.admin);
    for (const [path, title] of Object.entries(pages)) {
      await page.goto(`${platform.base}/console/${path}`);
      await heading(page, title).waitFor();
      expect(await axeFaults(page), `${path} ${colorScheme} ${width}`).toEqual([]);
    }
    await page.goto(`${platform.base}/console/keys`);
    await button(page, "New API key").click();
    expect(await axeFaults(page), "dialog").toEqual([]);
    await page.context().close();
  }
});

test("is sent only to browsers at /, and with a strict policy", async () => {
  const get = (path: string, accept: string) => fetch(`${platform.base}${path}`, { headers: { accept } });
  expect((await get("/", "application/json")).status).toBe(404);
  for (const path of ["/", "/console", "/console/assets/1"]) {
    const response = await get(path, "text/html,*/*");
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/script-src 'nonce-[\w+/=]+'; style-src 'nonce-[\w+/=]+'/);
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toContain("unsafe");
    const [, script = ""] = /<script type="module" nonce="[^"]+" src="([^"]+)"/.exec(await response.text()) ?? [];
    const file = await get(script, "*/*");
    expect([file.status, file.headers.get("cache-control")]).toEqual([200, "public, max-age=31536000, immutable"]);
  }
  for (const name of ["nothing.js", "files.json", "..%2Fbuild-info.json"])
    expect((await get(`/console/files/${name}`, "*/*")).status).toBe(404);
});

test("a key that may receive no events has no stream, and no notice of a lost connection", async () => {
  const { admin, base, as } = platform;
  const [tenant] = (await as({ admin }).listTenants()).body;
  const body = { tenant_id: tenant.id, scopes: ["playback:read"] };
  const { token } = (await as({ admin }).createApiKey(body)).body;
  const seen = await signedIn(browser, base, token);
  await link(seen.page, "Jobs").click();
  await seen.page.getByText("No jobs.").waitFor();
  expect(seen.requests.filter(({ pathname }) => pathname.endsWith("/events/stream"))).toEqual([]);
  expect(await seen.page.getByText("The server does not respond").count()).toBe(0);
  expect(faultsOf(seen)).toEqual([]);
});
