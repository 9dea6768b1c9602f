import { afterAll, beforeAll, expect, test } from "vitest";
import { visit } from "#test/support/browser/browser.ts";
import { type AssetPages, eventually, startAssetPages } from "./asset-pages.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";
import { button, faultsOf, heading, signedIn } from "./console.ts";

let pages: AssetPages;
beforeAll(async () => {
  pages = await startAssetPages();
});
afterAll(() => pages?.close());

const call = async (method: string, path: string, body?: unknown) =>
  (await pages.platform.call(method, `/api/v1/${path}`, { key: pages.platform.key, body })).body;

test("a collection is published in the console, watched as a page and as a playlist, and withdrawn", async () => {
  const { tenant_id } = await call("GET", `assets/${pages.assetId}`);
  const { id } = await call("POST", "collections", { tenant_id, collection: { name: "Films", slug: "films" } });
  const assets = [pages.assetId, await pages.newClip("Second film")];
  for (const asset of assets)
    await call("PATCH", `assets/${asset}`, { video_asset: { collection_id: id, playback_policy: "public" } });

  const owner = await signedIn(pages.browser, pages.platform.base, pages.platform.key);
  await owner.page.goto(`${pages.platform.base}/console/assets?collection=${id}`);
  await button(owner.page, "Publish").click();
  await button(owner.page, "Confirm").click();
  await owner.page.getByText("Public page", { exact: true }).waitFor();
  const url = (await owner.page.getByRole("link", { name: "Open page" }).getAttribute("href")) as string;

  for (const { colorScheme, width } of APPEARANCES) {
    const size = { colorScheme, viewport: { width, height: 800 } };
    const grid = await visit(pages.browser, url, size);
    const list = await visit(pages.browser, url.replace("/c/", "/embed/c/"), size);
    expect(await grid.page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    expect([...grid.faults, ...list.faults]).toEqual([]);
    // Its own styles are none of the page's, and are refused.
    expect(await axeFaults(grid.page)).toEqual([]);
    expect(await axeFaults(list.page)).toEqual([]);
  }

  const german = await visit(pages.browser, url, { locale: "de-DE" });
  await german.page.getByRole("searchbox", { name: "In dieser Sammlung suchen" }).fill("Second");
  await button(german.page, "Suchen").click();
  await german.page.getByText("Treffer für „Second“").waitFor();
  await german.page.getByRole("link", { name: /Second film/ }).click();
  await heading(german.page, "Second film").waitFor();

  // The newest first; at its end the next one plays by itself, unless that is switched off.
  const { page, faults } = await visit(pages.browser, url.replace("/c/", "/embed/c/"));
  const sent: { pathname: string; search: string; headers: Record<string, string> }[] = [];
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.startsWith("/media/")) sent.push({ pathname, search, headers: request.headers() });
  });
  const current = () => page.locator(".list a[aria-current]").textContent();
  const toTheEnd = () =>
    page.evaluate(`(async () => {
      const { video } = document.querySelector("svc-player");
      await video.play();
      video.currentTime = video.duration - 0.2;
    })()`);
  expect(await current()).toContain("Second film");
  await page.locator("media-play-button").first().click();
  await eventually(() => page.evaluate("document.querySelector('svc-player').video.readyState")).toBeGreaterThan(1);
  await toTheEnd();
  await eventually(current).toContain("Holiday film");
  await eventually(() => page.evaluate("document.querySelector('svc-player').video.currentTime")).toBeGreaterThan(0);
  await button(page, "Previous video").click();
  await eventually(current).toContain("Second film");
  expect(faults).toEqual([]);
  // Segments have CMCD with the session in headers; URLs stay as they are, so that caches keep what they have.
  const segments = sent.filter(({ pathname }) => pathname.endsWith(".m4s"));
  expect(segments.length).toBeGreaterThan(1);
  for (const { search, headers } of segments) {
    expect(search).toBe("");
    expect(headers["cmcd-session"]).toMatch(/^cid="[^"]+",sid="vodbox\.\w{32}",st=v$/);
    expect(headers["cmcd-object"]).toMatch(/^(br=\d+,)?d=\d+,ot=(a|v|av)$/);
    expect(headers["cmcd-request"]).toMatch(/^bl=\d+(,su)?$/);
  }
  const playlists = sent.filter(({ pathname }) => pathname.endsWith(".m3u8"));
  expect(playlists.filter(({ headers }) => "cmcd-session" in headers)).toEqual([]);

  await button(owner.page, "Unpublish").click();
  await button(owner.page, "Confirm").click();
  await button(owner.page, "Publish").waitFor();
  expect((await visit(pages.browser, url)).status).toBe(410);
  expect(faultsOf(owner)).toEqual([]);
});
