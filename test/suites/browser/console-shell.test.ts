import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { readyAsset } from "#test/support/flow.ts";
import { png } from "#test/support/png.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";
import { button, faultsOf, heading, signedIn, signInAs } from "./console.ts";

const PASSWORD = "correct horse";
const CUES = "WEBVTT\n\n00:00.000 --> 00:01.000\nGood evening\n\n00:02.000 --> 00:03.000\nThe zeppelin has landed\n";

let browser: Browser;
let platform: Platform;
let assetId: number;
beforeAll(async () => {
  [browser, platform] = await Promise.all([sharedBrowser(), startPlatform()]);
  const { asset } = await readyAsset(platform, platform.key, { title: "Harbour at dawn" });
  assetId = asset.id;
  // An image that can be made smaller, for the list.
  const image = { raw: new Uint8Array(png(64, 36)), headers: { "content-type": "image/png" } };
  const poster = await platform.call("PUT", `/api/v1/assets/${assetId}/poster`, { key: platform.key, ...image });
  expect(poster.status, poster.text).toBe(200);
  await subtitled(platform, platform.key, assetId, { language: "en", label: "English" }, CUES);
});
afterAll(() => platform?.close());

const option = (page: Page, name: string | RegExp) => page.getByRole("option", { name });
const goTo = async (page: Page, words: string) => {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to…" }).fill(words);
};

async function person(role: string) {
  const { admin } = platform;
  const [tenant] = (await platform.as({ admin }).listTenants()).body;
  const credentials = { email: `${role}@example.com`, password: PASSWORD };
  const body = { ...credentials, name: `An ${role}`, tenant_id: tenant.id, role };
  expect((await platform.as({ admin }).createTenantUser(body)).status).toBe(201);
  return credentials;
}

test("Ctrl-K leads to pages, actions, videos, and to what is said in them, with the keyboard alone", async () => {
  const seen = await signInAs(browser, platform.base, await person("admin"));
  const { page } = seen;
  await goTo(page, "webh");
  await page.keyboard.press("Enter");
  await heading(page, "Webhooks").waitFor();

  await goTo(page, "");
  await option(page, "Assets").waitFor();
  await page.keyboard.press("ArrowUp");
  expect(await page.getByRole("option", { selected: true }).textContent()).toBe("Start a live stream");
  await page.keyboard.press("ArrowDown");
  expect(await page.getByRole("option", { selected: true }).textContent()).toBe("Assets");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  await goTo(page, "harbour");
  await option(page, "Harbour at dawn").click();
  await heading(page, "Harbour at dawn").waitFor();
  expect(new URL(page.url()).pathname).toBe(`/console/assets/${assetId}`);

  await page.locator("button.go-to").click();
  await page.getByRole("combobox", { name: "Go to…" }).fill("zeppelin land");
  await option(page, /0:02 The zeppelin has landed/).waitFor();
  await page.keyboard.press("Enter");
  await expect.poll(() => new URL(page.url()).search).toBe("?t=2");

  // What is not saved is kept, unless the person agrees.
  await page.getByLabel("Title", { exact: true }).fill("Not saved");
  const asked: string[] = [];
  page.once("dialog", (dialog) => {
    asked.push(dialog.message());
    return dialog.dismiss();
  });
  await goTo(page, "webh");
  await page.keyboard.press("Enter");
  await expect.poll(() => asked).toEqual(["There are changes that are not saved. Leave anyway?"]);
  await page.keyboard.press("Escape");
  expect(await page.getByLabel("Title", { exact: true }).inputValue()).toBe("Not saved");

  await goTo(page, "nothing has this name");
  await page.getByText("Nothing found.").waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("a viewer is offered no action, and sees who is signed in where", async () => {
  const seen = await signInAs(browser, platform.base, await person("viewer"));
  const { page } = seen;
  await goTo(page, "");
  await option(page, "Assets").waitFor();
  expect(await option(page, /Upload a video|Invite|Start a live/).count()).toBe(0);
  expect(await option(page, /Tenants|System|Users/).count()).toBe(0);
  await page.keyboard.press("Escape");
  const menu = page.getByRole("button", { name: "An viewer" });
  expect(await menu.textContent()).toContain("Browser");
  await menu.click();
  for (const name of ["Guide", "API reference"]) await page.getByRole("link", { name }).waitFor();
  await page.getByLabel("Theme").waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("the operator finds videos of all tenants by title, and goes back to the list", async () => {
  const { page } = await signedIn(browser, platform.base, platform.admin);
  await goTo(page, "harbour");
  await option(page, "Harbour at dawn").click();
  await heading(page, "Harbour at dawn").waitFor();
  await page.getByRole("link", { name: "Back" }).click();
  await heading(page, "Assets").waitFor();
});

test.each(rows(APPEARANCES, 1))("axe finds nothing: $colorScheme, $width", async ({ colorScheme, width }) => {
  const options = { colorScheme, viewport: { width, height: 900 }, bypassCSP: true };
  const { page } = await signedIn(browser, platform.base, platform.admin, options);
  await goTo(page, "s");
  await option(page, "Assets").waitFor();
  expect(await axeFaults(page), "palette").toEqual([]);
  await page.keyboard.press("Escape");
  if (width < 768) await button(page, "Menu").click();
  await page.getByRole("button", { name: "Operator" }).click();
  await page.getByLabel("Theme").waitFor();
  expect(await axeFaults(page), "menu").toEqual([]);
});
