import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { sharedBrowser, type Visit, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { nightly } from "#test/support/nightly.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";

let browser: Browser;
let platform: Platform;
beforeAll(async () => {
  browser = await sharedBrowser();
  platform = await startPlatform();
});
afterAll(() => platform?.close());

const UPLOAD = "#tag/uploads/POST/api/v1/uploads/initiate";
const TENANTS = "#tag/tenants/GET/api/v1/tenants";
const WIDE = { width: 1280, height: 900 };

async function docs(hash = "", options: BrowserContextOptions = {}): Promise<Visit> {
  const seen = await visit(browser, `${platform.base}/docs${hash}`, { viewport: WIDE, ...options });
  await seen.page.getByRole("heading", { name: "vodbox", level: 1 }).waitFor({ state: "attached" });
  return seen;
}

/** No errors, which include violations of the policy, and no requests to other servers. */
function expectClean({ faults, requests }: Visit): void {
  expect(faults).toEqual([]);
  expect(new Set(requests.map((url) => url.origin))).toEqual(new Set([platform.base]));
}

const openEditor = async (page: Page) => {
  await page
    .getByRole("button", { name: /Test Request/ })
    .first()
    .click();
  await page.getByRole("dialog").getByRole("button", { name: /^Send/ }).first().waitFor();
};
const isDark = (page: Page) => page.evaluate<boolean>(`document.body.classList.contains("dark-mode")`);

test("shows the introduction, Uploads, Playback, and then the other tags, in the order of the document", async () => {
  const seen = await docs();
  const { body } = await platform.call("GET", "/api/v1/openapi.json");
  const tags: string[] = body.tags.map(({ name }: { name: string }) => name);
  expect(tags.slice(0, 2)).toEqual(["Uploads", "Playback"]);
  const links = await seen.page.locator(".t-doc__sidebar a").allTextContents();
  const shown = links.map((text) => text.trim()).filter((text) => text === "Introduction" || tags.includes(text));
  expect(shown).toEqual(["Introduction", ...tags]);
  expect(seen.requests.map(({ pathname }) => pathname)).toEqual([
    "/docs",
    "/docs/start.js",
    "/docs/scalar.js",
    "/api/v1/openapi.json",
  ]);
  expectClean(seen);
});

const SEARCHES: [where: string, text: string][] = [
  ["a parameter", "bytes_expected filename captions_required"],
  ["a summary", "Initiate a direct upload"],
  ["a description", "Name of the file, without directories"],
];

test.each(rows(SEARCHES, 1))("finds an operation by %s, with the keyboard only", async (_, text) => {
  const { page, ...seen } = await docs();
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: /search/i });
  await field.waitFor();
  await page.keyboard.type(text);
  const wanted = page.getByRole("option", { name: /Initiate a direct upload/ });
  await wanted.waitFor();
  const options = await page.getByRole("option").allTextContents();
  const position = options.findIndex((option) => option.includes("Initiate a direct upload"));
  for (let step = 0; step <= position; step++) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/docs${UPLOAD}`);
  await page.getByText("Size of the file in bytes").first().waitFor();
  expectClean({ page, ...seen });
});

nightly(
  "follows the color scheme of the system until it is switched, and stores that for the session only",
  async () => {
    expect(await isDark((await docs("", { colorScheme: "light" })).page)).toBe(false);
    const seen = await docs("", { colorScheme: "dark" });
    const { page } = seen;
    expect(await isDark(page)).toBe(true);
    await page.locator(".darklight-reference button[aria-pressed]").click();
    await expect.poll(() => page.evaluate(`document.body.classList.contains("light-mode")`)).toBe(true);
    await page.reload();
    await page.getByRole("heading", { name: "vodbox", level: 1 }).waitFor();
    expect(await isDark(page)).toBe(false);
    expect(await page.evaluate("Object.keys(sessionStorage)")).toEqual(["colorMode"]);
    expect(await leftBehind(page)).toEqual({ cookies: [], origins: [] });
    expectClean(seen);
  },
);

/** Cookies, localStorage and IndexedDB, read from outside of the page. */
const leftBehind = (page: Page) => page.context().storageState({ indexedDB: true });

test("sends a request with a typed API key to this server, by the address of the page", async () => {
  // Another name than in the server's base URL: the page must use the name that it was opened with.
  const base = platform.base.replace("127.0.0.1", "localhost");
  const seen = await visit(browser, `${base}/docs${TENANTS}`, { viewport: WIDE });
  const { page } = seen;
  await openEditor(page);
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Value", { exact: true }).first().waitFor();
  await dialog.locator("input[type=password], input[autocomplete=off]").first().fill(platform.key);
  const sent = page.waitForResponse((response) => new URL(response.url()).pathname === "/api/v1/tenants");
  await dialog.getByRole("button", { name: /^Send/ }).first().click();
  const response = await sent;
  expect(response.request().headers()["x-api-key"]).toBe(platform.key);
  expect(response.status()).toBe(200);
  expect(await response.json()).toMatchObject([{ slug: "web" }]);
  expect(seen.faults).toEqual([]);
  expect(new Set(seen.requests.map((url) => url.origin))).toEqual(new Set([base]));
  // The key is in memory only.
  expect(await page.evaluate("JSON.stringify(Object.entries(sessionStorage))")).not.toContain(platform.key);
  expect(await leftBehind(page)).toEqual({ cookies: [], origins: [] });
});

test("allows scripts and style elements only by nonce, and nothing of other servers", async () => {
  const policies = await Promise.all(
    [1, 2].map(async () => {
      const { headers } = await platform.call("GET", "/docs");
      return headers.get("content-security-policy") as string;
    }),
  );
  expect(policies[0]).not.toBe(policies[1]);
  for (const policy of policies) {
    const directives = new Map(policy.split("; ").map((each) => [each.split(" ")[0], each.split(" ").slice(1)]));
    expect(directives.get("default-src")).toEqual(["'none'"]);
    expect(directives.get("connect-src")).toEqual(["'self'"]);
    expect(directives.get("script-src")).toEqual([expect.stringMatching(/^'nonce-[\w+/]{22}=='$/)]);
    expect(directives.get("style-src")).toEqual(directives.get("script-src"));
    expect(policy).not.toMatch(/unsafe-eval|https?:/);
  }
});

test("names the OpenAPI document to readers without JavaScript", async () => {
  const { page } = await visit(browser, `${platform.base}/docs`, { javaScriptEnabled: false });
  await page.getByRole("link", { name: "/api/v1/openapi.json" }).click();
  expect(page.url()).toBe(`${platform.base}/api/v1/openapi.json`);
});

nightly.each(APPEARANCES)("axe finds nothing: $colorScheme, $width", async ({ colorScheme, width }) => {
  const violations = async (page: Page) => {
    // Colors that fade in have too little contrast until the end.
    await expect
      .poll(() => page.evaluate(`document.getAnimations().every(({ playState }) => playState !== "running")`))
      .toBe(true);
    return axeFaults(page);
  };
  const options = { colorScheme, viewport: { width, height: 900 }, bypassCSP: true, reducedMotion: "reduce" as const };
  const start = await docs("", options);
  expect(await violations(start.page), "introduction").toEqual([]);
  const { page } = await docs(UPLOAD, options);
  await page.getByText("Size of the file in bytes").first().waitFor();
  expect(await violations(page), "operation").toEqual([]);
  await openEditor(page);
  expect(await violations(page), "request").toEqual([]);
  if (width < WIDE.width) return;
  const { page: searched } = await docs("", options);
  await searched.keyboard.press("Control+k");
  await searched.getByRole("combobox", { name: /search/i }).waitFor();
  expect(await violations(searched), "search").toEqual([]);
  await searched.keyboard.type("upload");
  await searched.getByRole("option").first().waitFor();
  expect(await violations(searched), "results").toEqual([]);
});
