import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Frame, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { untilPlayed, visit } from "#test/support/browser/browser.ts";
import { atEnd } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { type AssetPages, eventually, startAssetPages } from "./asset-pages.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";
import { button, faultsOf, signedIn } from "./console.ts";

let pages: AssetPages;
beforeAll(async () => {
  pages = await startAssetPages();
});
afterAll(() => pages?.close());

const shareOf = (id: number, body: unknown) => pages.api("POST", `${id}/shares`, body);
const playsOf = async (id: number, { id: share }: { id: number }) =>
  (await pages.api("GET", `${id}/shares/${share}`)).play_count;
const play = async (at: Page | Frame) => {
  await at.locator("media-play-button").first().click();
  await untilPlayed(at, 1);
};
/** A page of another origin: by the name of this machine, not its address, also another site. */
async function foreignPage(html: string): Promise<string> {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(html));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => server.close());
  return `http://localhost:${(server.address() as AddressInfo).port}/`;
}
const frameOf = async (page: Page): Promise<Frame> => {
  const frame = await (await page.locator("iframe").elementHandle())?.contentFrame();
  if (!frame) throw new Error("There is no frame.");
  return frame;
};

test("a share with a password is made in the console, opened by its viewers, changed and deleted", async () => {
  const id = await pages.newAsset("Private film");
  const owner = await pages.open({ id });
  const { page } = owner;
  await button(page, "Share").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("For Ann");
  await dialog.getByLabel("Password").fill("open sesame");
  await dialog.getByLabel("Most plays").fill("5");
  await dialog.getByLabel("Viewers may download").check();
  await button(page, "Create").click();
  const row = page.getByRole("row", { name: /For Ann/ });
  await row.getByText("0 / 5").waitFor();
  const url = (await row.getByRole("link").getAttribute("href")) as string;
  await row.getByRole("button", { name: "Copy link", exact: true }).click();
  await row.getByText("Copied").waitFor();

  const ann = await visit(pages.browser, url);
  expect(await ann.page.title()).toBe("Enter the password");
  expect(await ann.page.content()).not.toContain("Private film");
  await ann.page.getByLabel("Password").fill("close sesame");
  await button(ann.page, "Watch").click();
  await ann.page.getByRole("alert").getByText("The password is wrong.").waitFor();
  await ann.page.getByLabel("Password").fill("open sesame");
  await ann.page.keyboard.press("Enter");
  await ann.page.getByRole("heading", { name: "Private film" }).waitFor();
  await play(ann.page);
  const [saved] = await Promise.all([ann.page.waitForEvent("download"), button(ann.page, "Download").click()]);
  expect(saved.suggestedFilename()).toBe("clip.mp4");
  await ann.page.reload();
  await play(ann.page);
  const [share] = await pages.api("GET", `${id}/shares`);
  expect(share).toMatchObject({ name: "For Ann", play_count: 1, has_password: true });

  // Another password must be typed.
  await page.reload();
  await row.getByText("1 / 5").waitFor();
  await row.getByRole("button", { name: "Edit", exact: true }).click();
  await dialog.getByLabel("Name").fill("For Bob");
  await dialog.getByLabel("Password", { exact: true }).fill("another");
  await button(page, "Save").nth(1).click();
  await page.getByRole("row", { name: /For Bob/ }).waitFor();
  await ann.page.reload();
  await ann.page.getByLabel("Password").waitFor();

  await page
    .getByRole("row", { name: /For Bob/ })
    .getByRole("button", { name: "Delete share" })
    .click();
  await button(page, "Confirm").click();
  await page.getByText("Not shared yet", { exact: false }).waitFor();
  const late = await visit(pages.browser, url);
  expect(late.status).toBe(410);
  await late.page.getByRole("heading", { name: "This link has ended" }).waitFor();
  expect(faultsOf(owner)).toEqual([]);
  expect(late.faults).toEqual([]);
});

test("the embed code of a signed video is that of a share named Embed, and plays in a page of another site", async () => {
  const id = await pages.newClip("Embedded film");
  const seen = await signedIn(pages.browser, pages.platform.base, pages.platform.key, {
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const { page } = seen;
  const copied = async () => {
    await page.goto(`${pages.platform.base}/console/assets/${id}`);
    await button(page, "Copy embed code").click();
    await page.getByText("Copied").first().waitFor();
    return (await page.evaluate("navigator.clipboard.readText()")) as string;
  };
  const code = await copied();
  expect(code).toMatch(/^<iframe src="[^"]+\/embed\/s\/\w{22}" width="640" height="360" style="border:0;[^"]*"/);
  expect(code).not.toContain("token");
  expect(await copied()).toBe(code);
  const shares = await pages.api("GET", `${id}/shares`);
  expect(shares.map(({ name, play_count }: any) => [name, play_count])).toEqual([["Embed", 0]]);

  const site = await visit(pages.browser, await foreignPage(`<!doctype html><title>Site</title>${code}`));
  await play(await frameOf(site.page));
  await eventually(() => playsOf(id, shares[0])).toBe(1);
  expect(site.faults).toEqual([]);
  expect(faultsOf(seen)).toEqual([]);
});

nightly("a video with a password plays in a frame of another site, which may refuse all cookies", async () => {
  const id = await pages.newAsset("Framed film");
  const share = await shareOf(id, { password: "open sesame", allow_download: true });
  const framed = await foreignPage(
    `<!doctype html><title>Site</title><iframe src="${share.embed_url}" width="640" height="360"></iframe>`,
  );
  const { page, faults } = await visit(pages.browser, framed);
  const frame = await frameOf(page);
  await frame.getByLabel("Password").fill("open sesame");
  await frame.getByRole("button", { name: "Watch" }).click();
  await play(frame);
  await frame.getByRole("button", { name: "Download" }).waitFor();
  expect(await playsOf(id, share)).toBe(1);
  expect(faults).toEqual([]);
});

test("the page that can be sent cannot be framed", async () => {
  const id = await pages.newClip("Unframed film");
  const share = await shareOf(id, {});
  const { page } = await visit(
    pages.browser,
    await foreignPage(`<!doctype html><title>Site</title><iframe src="${share.url}"></iframe>`),
  );
  const frame = await frameOf(page);
  await eventually(() => frame.url()).toMatch(/^chrome-error:/);
});

test("a viewer who plays when the share ends gets a message, and no more media", async () => {
  const id = await pages.newClip("Ending film");
  const share = await shareOf(id, {});
  const { page } = await visit(pages.browser, share.url);
  await play(page);
  await pages.api("DELETE", `${id}/shares/${share.id}`);
  // As a page does that shows another video, and this one again.
  await page.evaluate(() => {
    const player = (globalThis as any).document.querySelector("svc-player");
    const name = player.getAttribute("playback-id");
    player.removeAttribute("playback-id");
    player.setAttribute("playback-id", name);
  });
  await page.locator('[data-reason="playback_token_invalid"]').waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "This link has ended" }).waitFor();
});

nightly("the pages are accessible, light and dark, wide and narrow", async () => {
  const id = await pages.newAsset("Accessible film");
  const locked = await shareOf(id, { password: "open sesame" });
  const open = await shareOf(id, { allow_download: true });
  for (const { colorScheme, width } of APPEARANCES) {
    const options = { colorScheme, viewport: { width, height: 900 }, bypassCSP: true };
    for (const url of [locked.url, locked.embed_url, open.url, open.embed_url]) {
      const { page } = await visit(pages.browser, url, options);
      expect(await axeFaults(page), `${url} ${colorScheme} ${width}`).toEqual([]);
      await page.context().close();
    }
    const { page } = await visit(pages.browser, locked.url, options);
    await page.getByLabel("Password").fill("wrong");
    await button(page, "Watch").click();
    await page.getByRole("alert").waitFor();
    expect(await axeFaults(page), `wrong ${colorScheme} ${width}`).toEqual([]);
    await page.context().close();
  }
});
