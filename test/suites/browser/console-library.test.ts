import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { nightly } from "#test/support/nightly.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signedIn } from "./console.ts";

let platform: Platform;
let browser: Browser;
let tenantId: number;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  tenantId = (await platform.as({ admin: platform.admin }).listTenants()).body[0].id;
});
afterAll(async () => {
  await platform?.close();
});

const open = (options?: Parameters<typeof signedIn>[3]) => signedIn(browser, platform.base, platform.key, options);
const eventually = <T>(read: () => T | Promise<T>) => expect.poll(read, { timeout: 30_000 });
const node = (page: Page, name: string) => page.getByRole("treeitem", { name });
/** The visible rows of the tree, each with a dash for each level below the first. */
const rows = (page: Page): Promise<string[]> =>
  page
    .getByRole("treeitem")
    .evaluateAll((all: any[]) =>
      all.map(
        (each) =>
          "- ".repeat(Number(each.getAttribute("aria-level")) - 1) + each.querySelector(".tree-name").textContent,
      ),
    );
/** Duration of `work` in milliseconds. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}
async function create(page: Page, name: string): Promise<void> {
  await button(page, "New collection").click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await button(page, "Create").click();
  await node(page, name).waitFor();
}
async function upload(title: string): Promise<number> {
  const { as, key, clip } = platform;
  const body = { filename: `${title}.mp4`, bytes_expected: clip.length, title };
  const started = (await as(key).initiateUpload(body)).body;
  await fetch(started.upload_url, { method: "PUT", headers: started.upload_headers, body: new Uint8Array(clip) });
  await as(key).completeUpload(started.id, { bytes_received: clip.length });
  return started.asset_id;
}
const collections = async () => (await platform.as(platform.key).listCollections()).body;

test("collections are created, nested, renamed, moved and deleted, by keyboard too", async () => {
  const seen = await open();
  const { page } = seen;
  await create(page, "Sports");
  await create(page, "Football");
  expect(await rows(page)).toEqual(["All videos", "Sports", "- Football"]);
  await node(page, "All videos").click();
  await create(page, "Ünïcode & more");
  // A name that is taken gets another slug.
  await node(page, "All videos").click();
  await create(page, "Tennis");
  await button(page, "Move to…").click();
  await page.getByLabel("Find a collection").fill("spo");
  await page.getByRole("dialog").getByRole("button", { name: "Sports", exact: true }).click();
  await eventually(() => rows(page)).toEqual(["All videos", "Sports", "- Football", "- Tennis", "Ünïcode & more"]);
  await button(page, "Rename").click();
  await page.getByLabel("Name", { exact: true }).fill("Table tennis");
  await button(page, "Save").click();
  await node(page, "Table tennis").waitFor();

  const tree = page.getByRole("tree");
  await tree.focus();
  const active = () =>
    tree.evaluate((element: any) => {
      const id = element.getAttribute("aria-activedescendant");
      return element.ownerDocument.getElementById(id)?.querySelector(".tree-name")?.textContent;
    });
  await page.keyboard.press("Home");
  expect(await active()).toBe("All videos");
  await page.keyboard.press("ArrowDown");
  expect(await active()).toBe("Sports");
  await page.keyboard.press("ArrowLeft");
  expect(await rows(page)).toEqual(["All videos", "Sports", "Ünïcode & more"]);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await eventually(active).toBe("Football");
  await page.keyboard.press("ArrowLeft");
  await eventually(active).toBe("Sports");
  await page.keyboard.press("End");
  await eventually(active).toBe("Ünïcode & more");
  await page.keyboard.press("Enter");
  await eventually(() => new URL(page.url()).search).toMatch(/^\?collection=\d+$/);
  await page.goBack();
  await eventually(() => node(page, "Table tennis").getAttribute("aria-selected")).toBe("true");

  // Dragged onto another, and onto the top.
  await node(page, "Football").dragTo(node(page, "Table tennis"));
  await eventually(() => rows(page)).toContainEqual("- Table tennis");
  await node(page, "Table tennis").locator(".twist").click();
  await eventually(() => rows(page)).toEqual([
    "All videos",
    "Sports",
    "- Table tennis",
    "- - Football",
    "Ünïcode & more",
  ]);
  // Into itself: the API says why not.
  await node(page, "Sports").dragTo(node(page, "Football"));
  await page.getByRole("alert").getByText("cycle", { exact: false }).waitFor();
  await node(page, "Football").dragTo(node(page, "All videos"));
  await eventually(() => rows(page)).toEqual(["All videos", "Sports", "- Table tennis", "Football", "Ünïcode & more"]);

  await node(page, "Sports").click();
  await button(page, "Delete collection").click();
  await button(page, "Confirm").click();
  await eventually(async () => (await rows(page)).sort()).toEqual(
    ["All videos", "Football", "Table tennis", "Ünïcode & more"].sort(),
  );
  expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});

test("a new video appears by itself, shows its frames under the pointer, and is dragged into a collection", async () => {
  const seen = await open();
  const { page } = seen;
  await create(page, "Dropped");
  await node(page, "All videos").click();
  const id = await upload("Fresh");
  await link(page, "Fresh").waitFor({ timeout: 30_000 });
  await untilReady(platform, id);
  const card = page.locator(".assets .item", { hasText: "Fresh" });
  const poster = card.locator(".poster");
  await poster.locator("img").waitFor({ timeout: 30_000 });
  // In the size of a card, not the whole one.
  const still = await poster.locator("img").evaluate(async (image: any) => {
    await image.decode();
    return [image.naturalWidth, image.currentSrc as string];
  });
  expect(still).toEqual([480, expect.stringContaining("thumbnail.webp")]);
  const box = await poster.boundingBox();
  if (!box) throw new Error("There is no poster");
  const frameAt = async (share: number) => {
    await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
    const frame = poster.locator(".frame-sheet");
    await frame.waitFor();
    await frame.evaluate((image: any) => image.decode());
    return frame.evaluate((image: any) => image.style.transform as string);
  };
  const start = await frameAt(0.05);
  const end = await frameAt(0.95);
  expect(start).not.toBe(end);
  await page.mouse.move(0, 0);
  await poster.locator(".frame-sheet").waitFor({ state: "detached" });
  expect(seen.requests.filter(({ pathname }) => pathname.endsWith("storyboard.json"))).toHaveLength(1);
  // With the focus of the keyboard the frames are shown one after the other.
  await link(page, "0:08Fresh").or(card.getByRole("link")).first().focus();
  await poster.locator(".frame-sheet").waitFor();

  await card.getByRole("link").dragTo(node(page, "Dropped"));
  await page.getByText("1 of 1 changed.").waitFor();
  await node(page, "Dropped 1").click();
  await page.getByText("1 video", { exact: true }).waitFor();
  const [collection] = (await collections()).filter((one) => one.name === "Dropped");
  expect((await platform.as(platform.key).getAsset(id)).body.collection_id).toBe(collection?.id);
  expect(faultsOf(seen)).toEqual([]);
});

nightly("ten thousand collections stay usable", async () => {
  const { as, key, base } = platform;
  const root = (await as(key).createCollection({ tenant_id: tenantId, collection: { name: "Deep", slug: "deep" } }))
    .body.id;
  const other = (await as({ admin: platform.admin }).createTenant({ name: "Big", slug: "big" })).body;
  const scopes = ["assets:read", "assets:write"];
  const { token } = (await as({ admin: platform.admin }).createApiKey({ tenant_id: other.id, scopes })).body;
  for (let from = 0; from < 10_000; from += 250)
    await Promise.all(
      Array.from({ length: 250 }, (_, index) => from + index).map((number) =>
        as(token).createCollection({
          tenant_id: other.id,
          collection: { name: `Collection ${number}`, slug: `c-${number}` },
        }),
      ),
    );
  const { page } = await signedIn(browser, base, token);
  await node(page, "Collection 0").waitFor();
  const loadedMs = await timed(async () => {
    await page.reload();
    await node(page, "Collection 0").waitFor();
  });
  await page.getByRole("tree").focus();
  // A key takes less than loading the page: it renders only the rows that are visible.
  const pressedMs = await timed(async () => {
    await page.keyboard.press("End");
    await node(page, "Collection 9999").waitFor();
  });
  console.info({ loadedMs, pressedMs });
  expect(pressedMs).toBeLessThan(loadedMs);
  expect(await page.getByRole("treeitem").count()).toBeLessThan(60);
  // Nothing of the other tenant.
  expect(await node(page, "Deep").count()).toBe(0);
  await platform.as(key).deleteCollection(root);
});

test("many changes at once cause few requests, and back leads to where the list was", async () => {
  const { as, admin, base } = platform;
  const tenant = (await as({ admin }).createTenant({ name: "Busy", slug: "busy" })).body;
  const body = { tenant_id: tenant.id, scopes: ["assets:read", "assets:write"] };
  const { token } = (await as({ admin }).createApiKey(body)).body;
  const ids: number[] = [];
  for (let index = 0; index < 80; index++) {
    const file = { filename: `${index}.mp4`, bytes_expected: 1, title: `Clip ${index}` };
    ids.push((await as(token).initiateUpload(file)).body.asset_id);
  }
  const seen = await signedIn(browser, base, token);
  const { page } = seen;
  await page.getByText("80 videos").waitFor();
  await page.evaluate("scrollTo(0, 1000)");
  // A click may scroll once more before it happens.
  await page.evaluate(
    "addEventListener('click', () => { globalThis.leftAt = scrollY }, { capture: true, once: true })",
  );
  await link(page, "Clip 50").click();
  await heading(page, "Clip 50").waitFor();
  const position = await page.evaluate("leftAt");
  expect(position).toBeGreaterThan(500);
  await page.goBack();
  await link(page, "Clip 50").waitFor();
  await eventually(() => page.evaluate("scrollY")).toBe(position);

  const counted = () => seen.requests.filter(({ pathname }) => pathname.endsWith("/assets/pages")).length;
  const before = counted();
  await Promise.all(ids.slice(0, 50).map((id) => as(token).deleteAsset(id)));
  await page.getByText("30 videos").waitFor();
  expect(counted() - before).toBeLessThanOrEqual(3);
});

test("a session that may only read has no controls to change anything", async () => {
  const { as, admin, base } = platform;
  const body = { tenant_id: tenantId, scopes: ["assets:read"] };
  const { token } = (await as({ admin }).createApiKey(body)).body;
  const { page } = await signedIn(browser, base, token);
  await link(page, "Uploads").click();
  await page.getByText("This session may not upload.").waitFor();
  await link(page, "Assets").click();
  await page.getByRole("tree").waitFor();
  for (const name of ["Upload", "New collection", "Rename"]) expect(await button(page, name).count(), name).toBe(0);
  expect(await page.getByRole("checkbox").count()).toBe(0);
});

nightly("axe finds nothing with a tree, a selection and each dialog, light and dark, wide and narrow", async () => {
  await upload("For axe");
  for (const { colorScheme, width } of APPEARANCES) {
    const { page } = await open({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
    await page.getByText("More filters").click();
    for (const layout of ["List", "Grid"]) {
      await button(page, layout).click();
      await page.getByLabel("Select “For axe”").check();
      expect(await axeFaults(page), `${layout} ${colorScheme} ${width}`).toEqual([]);
      await page.getByLabel("Select “For axe”").uncheck();
    }
    await page.getByLabel("Select “For axe”").check();
    for (const name of ["Move to…", "Tag", "Playback policy", "Delete"]) {
      await page.getByLabel("Selection").getByRole("button", { name, exact: true }).click();
      expect(await axeFaults(page), name).toEqual([]);
      await page.keyboard.press("Escape");
    }
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    await page.context().close();
  }
});
