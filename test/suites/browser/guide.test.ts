import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";

let browser: Browser;
let platform: Platform;
beforeAll(async () => {
  browser = await sharedBrowser();
  platform = await startPlatform();
});
afterAll(() => platform?.close());

const guide = (options = {}) => visit(browser, `${platform.base}/docs/guide`, options);

test("the first page leads to each guide, and the search to a section, with the keyboard", async () => {
  const seen = await guide();
  const { page } = seen;
  await page
    .getByRole("main")
    .getByRole("link", { name: /^Share a video with a password/ })
    .click();
  await page.getByRole("heading", { level: 1, name: "Share a video with a password" }).waitFor();
  const image = page.getByRole("img", { name: "The dialog with name, password and limits" });
  await image.scrollIntoViewIfNeeded();
  // The policy of the page forbids what waits inside of it.
  await expect
    .poll(() => page.evaluate(`[...document.images].some(({ naturalWidth }) => naturalWidth > 1000)`))
    .toBe(true);
  await page.keyboard.press("/");
  await page.keyboard.type("zyxzyx");
  const found = page.locator("#found a");
  await page.locator("#found").getByText("Nothing about").waitFor();
  await page.getByRole("searchbox").fill("rotat secret");
  await found.first().waitFor();
  await page.keyboard.press("ArrowDown");
  const target = (await found.first().getAttribute("href")) as string;
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/docs/guide/${target}`);
  expect(await page.locator(":target").isVisible()).toBe(true);
  expect(seen.faults).toEqual([]);
  expect(new Set(seen.requests.map((url) => url.origin))).toEqual(new Set([platform.base]));
});

test("on a phone the pages are behind a button, and nothing is wider than the screen", async () => {
  const { page } = await guide({ viewport: { width: 390, height: 800 } });
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "The API" }).click();
  await page.getByRole("heading", { level: 1, name: "The API" }).waitFor();
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
});

test.each(rows(APPEARANCES, 1))("axe finds nothing: $colorScheme, $width", async ({ colorScheme, width }) => {
  const { page } = await guide({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
  expect(await axeFaults(page), "first page").toEqual([]);
  await page.goto(`${platform.base}/docs/guide/player.html`);
  expect(await axeFaults(page), "a document").toEqual([]);
});

test.each([
  ["other.html", 404],
  ["..%2fapi", 404],
  ["index.html.br", 404],
  ["index.html", 200],
])("/docs/guide/%s is %i", async (name, status) => {
  expect((await platform.call("GET", `/docs/guide/${name}`)).status).toBe(status);
});
