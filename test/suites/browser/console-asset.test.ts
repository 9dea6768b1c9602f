import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { visit } from "#test/support/browser/browser.ts";
import { untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { receiver } from "#test/support/receiver.ts";
import { subtitled } from "#test/support/subtitles.ts";
import {
  type AssetPages,
  eventually,
  lengthOf,
  playerOf,
  positionOf,
  seek,
  startAssetPages,
  tab,
  toast,
  VTT,
} from "./asset-pages.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signedIn } from "./console.ts";

let pages: AssetPages;
let assetId: number;
let api: AssetPages["api"];
beforeAll(async () => {
  pages = await startAssetPages();
  ({ assetId, api } = pages);
});
afterAll(() => pages?.close());

describe("the overview", () => {
  test("changes texts and expiry, shows how to embed, and downloads the source", async () => {
    const seen = await pages.open({ id: await pages.newAsset("First title") });
    const { page } = seen;
    await page.getByLabel("Title", { exact: true }).fill("Second title");
    await page.getByLabel("Description").fill("Two\nlines");
    await page.getByLabel("Delete at").fill("2031-02-03T04:05");
    await button(page, "Save").click();
    await heading(page, "Second title").waitFor();
    await page.getByText("Feb 3, 2031, 4:05 AM").waitFor();
    await button(page, "Copy embed code").click();
    expect(await page.getByLabel("Embed code").inputValue()).toMatch(/^<iframe src="http.*\/embed\/s\/\w{22}"/);
    await page.getByText("This video is signed", { exact: false }).waitFor();

    await button(page, "More").click();
    const [saved] = await Promise.all([page.waitForEvent("download"), button(page, "Download original").click()]);
    expect(readFileSync(await saved.path()).equals(pages.platform.clip)).toBe(true);

    // A public video needs no token.
    await button(page, "Publish").click();
    await button(page, "Publish").waitFor({ state: "detached" });
    expect(await page.getByLabel("Playback policy").inputValue()).toBe("public");
    await page.getByText("This video is signed", { exact: false }).waitFor({ state: "detached" });
    expect(await page.getByLabel("Embed code").inputValue()).toMatch(/^<iframe src="http.*\/embed\/vid_\w+"/);
    await page.getByLabel("Delete at").fill("");
    await button(page, "Save").click();
    await page.getByText("Feb 3, 2031", { exact: false }).waitFor({ state: "detached" });

    await button(page, "More").click();
    await button(page, "Delete source").click();
    await button(page, "Confirm").click();
    await page.getByText("(deleted)").waitFor();
    await button(page, "More").click();
    await link(page, "Analytics of this video").waitFor();
    expect(await button(page, "Download original").count()).toBe(0);
    await page.keyboard.press("Escape");
    await button(page, "Delete").click();
    await button(page, "Confirm").click();
    await heading(page, "Assets").waitFor();
    expect(faultsOf(seen)).toEqual([]);
  });

  test("says what of the source was left out", async () => {
    const path = join(emptyFolder(), "film.mkv");
    const tracks = ["-map", "0", "-map", "1", "-map", "1", ...fast, "-c:a:0", "aac", "-c:a:1", "tta"];
    await ffmpeg(...picture("320x180", "25", 2), ...sound(2), ...tracks, path);
    const { asset } = await uploaded(pages.platform, pages.platform.key, {
      bytes: readFileSync(path),
      title: "Two languages",
    });
    await untilReady(pages.platform, asset.id);
    const seen = await pages.open({ id: asset.id });
    const { page } = seen;
    const notice = page.getByRole("status").filter({ hasText: "Warnings" });
    await notice.getByText("Track 3 (audio, tta) cannot be decoded and was left out.").waitFor();
    expect(await axeFaults(page)).toEqual([]);
    if (process.env.SHOT) await page.screenshot({ path: process.env.SHOT });
    expect(faultsOf(seen)).toEqual([]);
  });

  test("says why an encode failed, and retries it", async () => {
    const { asset } = await uploaded(pages.platform, pages.platform.key, {
      bytes: "this is not a video",
      title: "Broken",
    });
    const { page } = await pages.open({ id: asset.id });
    await page.locator(".stand-in", { hasText: /source|video|media/i }).waitFor({ timeout: 60_000 });
    const error = (await api("GET", String(asset.id))).error.message;
    await page.locator(".stand-in", { hasText: error }).waitFor();
    await button(page, "Retry encoding").click();
    await toast(page, "Encoding is queued again.");
    await tab(page, "History").click();
    await page.getByText(/^Encoding \d+$/).waitFor();
    await page.locator(".history").getByText(error).waitFor({ timeout: 60_000 });
  });

  test("shows no control that the session may not use", async () => {
    const [tenant] = (await pages.platform.as({ admin: pages.platform.admin }).listTenants()).body;
    const body = { tenant_id: tenant.id, scopes: ["assets:read", "playback:read"] };
    const { token } = (await pages.platform.as({ admin: pages.platform.admin }).createApiKey(body)).body;
    await subtitled(pages.platform, pages.platform.key, assetId, { language: "fr", label: "Français" }, VTT);
    const seen = await pages.open({ token });
    const { page } = seen;
    for (const name of ["Delete", "Delete source", "Download original", "Save"])
      expect(await button(page, name).count(), name).toBe(0);
    await tab(page, "Subtitles").click();
    await button(page, "Download").waitFor();
    for (const name of ["Upload subtitles", "Edit", "Delete", "Translate"])
      expect(await button(page, name).count(), name).toBe(0);
    await tab(page, "History").click();
    await page.getByText("Encoding", { exact: false }).first().waitFor();
    expect(await page.getByText("video.asset.ready").count()).toBe(0);
    expect(faultsOf(seen)).toEqual([]);
  });
});

test("another tenant's video does not exist", async () => {
  const { admin, base, as } = pages.platform;
  const other = await as({ admin }).createTenant({ name: "Other", slug: "other" });
  const body = { tenant_id: other.body.id, scopes: ["assets:read", "assets:write", "playback:read"] };
  const { token } = (await as({ admin }).createApiKey(body)).body;
  const { page } = await signedIn(pages.browser, base, token);
  await page.goto(`${base}/console/assets/${assetId}?tab=history`);
  await page.getByRole("alert").getByText("No such asset.").waitFor();
  expect(await page.getByRole("alert").textContent()).toMatch(/Request req_[\w-]+/);
  expect(await page.content()).not.toContain("Holiday film");
});

nightly("all sections are in German, too", async () => {
  const { page } = await visit(pages.browser, `${pages.platform.base}/console`, { locale: "de-DE" });
  await page.getByLabel("Admin-Token oder API-Schlüssel").fill(pages.platform.admin);
  await page.keyboard.press("Enter");
  await heading(page, "Videos").waitFor();
  await page.goto(`${pages.platform.base}/console/assets/${assetId}`);
  await button(page, "Code zum Einbetten kopieren").waitFor();
  for (const [name, content] of Object.entries({
    Untertitel: "Untertitel hochladen",
    Kapitel: "Noch keine Kapitel oder anderen Spuren.",
    Vorschaubild: "Vom Encoder gewählt",
    Varianten: "Mittlere Bitrate",
    Ausschnitt: "Anfang setzen",
    Tags: "Noch keine Tags.",
    Verlauf: "Versuch 1 von 5",
  })) {
    await tab(page, name).click();
    await page.getByText(content).first().waitFor();
  }
});

nightly("a video that another client deletes is no longer shown", async () => {
  const { asset } = await uploaded(pages.platform, pages.platform.key, { title: "Short-lived" });
  const seen = await pages.open({ id: asset.id, tab: "history" });
  await api("DELETE", String(asset.id));
  await seen.page.getByText("This video was deleted.").waitFor();
  // An earlier event of its encode may just have caused a request.
  expect(faultsOf(seen).filter((fault) => !/status of 404/.test(fault))).toEqual([]);
});

test("a clip is marked in the player and created", async () => {
  const seen = await pages.open({ tab: "clip" });
  const { page } = seen;
  const frame = await playerOf(page);
  await seek(frame, 4.5);
  await eventually(() => positionOf(frame)).toBeCloseTo(4.5, 1);
  await button(page, "Mark in").click();
  expect(await page.getByLabel("Start (s)").inputValue()).toMatch(/^4\.[45]/);
  await seek(frame, 2);
  await eventually(() => positionOf(frame)).toBeCloseTo(2, 1);
  await button(page, "Mark out").click();
  await button(page, "Create clip").click();
  await page.getByRole("alert").getByText("must be after start_seconds", { exact: false }).waitFor();
  await page.getByLabel("End (s)").fill("6");
  await page.getByLabel("Title").fill("The best part");
  await button(page, "Create clip").click();
  await link(page, "The best part").click();
  await heading(page, "The best part").waitFor();
  const id = Number(/assets\/(\d+)/.exec(page.url())?.[1]);
  expect(await api("GET", String(id))).toMatchObject({ parent_asset_id: assetId, duration_seconds: 4 });
  expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});

nightly("an exact clip is cut at the frames that are marked", async () => {
  const seen = await pages.open({ tab: "clip" });
  const { page } = seen;
  await page.getByLabel("Start (s)").fill("1.5");
  await page.getByLabel("End (s)").fill("6.5");
  await page.getByLabel("Title").fill("Exactly this");
  await page.getByLabel("Cut", { exact: true }).selectOption({ label: "At frames" });
  await button(page, "Create clip").click();
  await page.getByText("It plays when its ends are encoded.").waitFor();
  await link(page, "Exactly this").click();
  await heading(page, "Exactly this").waitFor();
  const id = Number(/assets\/(\d+)/.exec(page.url())?.[1]);
  await untilReady(pages.platform, id);
  expect(await api("GET", String(id))).toMatchObject({ parent_asset_id: assetId, duration_seconds: 5 });
  expect(faultsOf(seen)).toEqual([]);
});

test.each([
  ["At segment boundaries", 4, "The video is trimmed."],
  ["At frames", 3.5, "The video is trimmed when its ends are encoded."],
])("a video is trimmed %s, after a question", async (mode, seconds, said) => {
  const body = { start_seconds: 0, end_seconds: 8, title: `To trim ${mode}` };
  const { id } = await api("POST", `${assetId}/clips`, body);
  const seen = await pages.open({ id, tab: "clip" });
  const { page } = seen;
  await page.getByLabel("Start (s)").fill("0");
  await page.getByLabel("End (s)").fill("3.5");
  await page.getByLabel("Trim", { exact: true }).selectOption({ label: mode });
  await button(page, "Trim this video").click();
  await button(page, "Cancel").click();
  expect((await api("GET", String(id))).duration_seconds).toBe(8);
  await button(page, "Trim this video").click();
  await button(page, "Confirm").click();
  await page.getByText(said, { exact: true }).waitFor();
  await eventually(async () => (await api("GET", String(id))).duration_seconds).toBe(seconds);
  // The page shows the new media by itself.
  await eventually(() => page.getByLabel("End (s)").inputValue()).toBe(String(seconds));
  await eventually(async () => lengthOf(await playerOf(page))).toBeCloseTo(seconds, 1);
  expect(faultsOf(seen)).toEqual([]);
});

nightly("renditions are listed with codecs, bitrates and segments", async () => {
  const { page } = await pages.open();
  await tab(page, "Overview").focus();
  for (let step = 0; step < 5; step++) await page.keyboard.press("ArrowRight");
  expect(await tab(page, "Renditions").getAttribute("aria-selected")).toBe("true");
  const row = page.getByRole("row", { name: /640 × 360, 20 fps/ });
  await row.getByText("4 s each").waitFor();
  expect(await row.textContent()).toMatch(/avc1\.\w+, mp4a\.40\.2.*Mbit\/s.*Mbit\/s/);
  // The tab is part of the address.
  await page.reload();
  await row.getByText("4 s each").waitFor();
});

test("the poster is a frame of the video, the current one, or an image, and can be reset", async () => {
  const seen = await pages.open({ tab: "poster" });
  const { page } = seen;
  await page.getByText("Chosen by the encoder").waitFor();
  expect(await button(page, "Use this frame").isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Frame at 0:04" }).click();
  await button(page, "Use this frame").click();
  await page.getByText("Chosen by hand").waitFor();
  const first = (await api("GET", String(assetId))).poster_path;
  await seek(await playerOf(page), 3);
  await button(page, "Use current frame").click();
  await eventually(async () => (await api("GET", String(assetId))).poster_path).not.toBe(first);
  const file = join(emptyFolder(), "poster.png");
  writeFileSync(file, await page.screenshot());
  await page.getByLabel("Image (JPEG, PNG or WebP)").setInputFiles(file);
  await button(page, "Upload").click();
  await eventually(() =>
    page.locator(".poster img").evaluate((image: any) => [image.complete, image.naturalWidth]),
  ).toEqual([true, 1280]);
  writeFileSync(file, "no image");
  await page.getByLabel("Image (JPEG, PNG or WebP)").setInputFiles(file);
  await button(page, "Upload").click();
  await page
    .getByRole("alert")
    .getByText(/Request req_/)
    .waitFor();
  await button(page, "Reset").click();
  await page.getByText("Chosen by the encoder").waitFor();
  expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});

test("tags are set, changed and removed, the collection is chosen, and duplicates are linked", async () => {
  const { id: tenant_id } = (await pages.platform.as({ admin: pages.platform.admin }).listTenants()).body[0];
  const create = async (name: string, parent_id?: number) =>
    (
      await pages.platform.as(pages.platform.key).createCollection({
        tenant_id,
        collection: { name, slug: name.toLowerCase(), ...(parent_id && { parent_id }) },
      })
    ).body.id;
  const inner = await create("Sylt", await create("Travel"));
  const again = await pages.newAsset("The same again");
  const seen = await pages.open({ id: again, tab: "organize" });
  const { page } = seen;
  const set = async (name: string, value: string) => {
    await page.getByLabel("Tag", { exact: true }).fill(name);
    await page.getByLabel("Value").fill(value);
    await button(page, "Set tag").click();
    await page.getByRole("row", { name: `${name} ${value}` }).waitFor();
  };
  await set("year", "2026");
  await set("place", "Sylt");
  await page
    .getByRole("row", { name: /^place/ })
    .getByRole("button", { name: "Edit", exact: true })
    .click();
  await page.getByLabel("Value").fill("Amrum");
  await button(page, "Set tag").click();
  await page.getByRole("row", { name: /^place Amrum/ }).waitFor();
  expect((await api("GET", String(again))).tags).toEqual({ year: 2026, place: "Amrum" });
  await page.getByRole("row", { name: /^year/ }).getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByRole("row", { name: /^year/ }).waitFor({ state: "detached" });
  await page.getByLabel("Collection").selectOption({ label: "Travel / Sylt" });
  await eventually(async () => (await api("GET", String(again))).collection_id).toBe(inner);
  await page.getByRole("listitem").filter({ hasText: "Same content" }).first().getByRole("link").waitFor();
  await page.getByRole("link", { name: "Holiday film", exact: true }).click();
  await heading(page, "Holiday film").waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

nightly("the history has jobs and webhook deliveries, newest first, and grows by itself", async () => {
  const target = await receiver();
  const { id: tenant_id } = (await pages.platform.as({ admin: pages.platform.admin }).listTenants()).body[0];
  const hook = await pages.platform.as({ admin: pages.platform.admin }).createWebhook({ tenant_id, url: target.url });
  const id = await pages.newAsset("Observed");
  const seen = await pages.open({ id, tab: "history" });
  const { page } = seen;
  const entries = page.locator(".history li");
  await entries.filter({ hasText: "video.asset.ready" }).getByText("Delivered").waitFor();
  const job = entries.filter({ hasText: /^.*Encoding \d+/ });
  expect(await job.textContent()).toMatch(/Completed.*Attempt 1 of \d.*Worker/);
  const order = await entries.allTextContents();
  const at = (pattern: RegExp) => order.findIndex((text) => pattern.test(text));
  expect(at(/video\.asset\.ready/)).toBeLessThan(at(/Encoding \d/));
  await api("PUT", `${id}/tracks`, { kind: "scene", cues: [] });
  await entries.filter({ hasText: "video.track.ready" }).waitFor();
  await pages.platform.as({ admin: pages.platform.admin }).deleteWebhook(hook.body.id);
  expect(faultsOf(seen)).toEqual([]);
});

test.each([
  [
    "en",
    {
      token: "Admin token or API key",
      assets: "Assets",
      upload: "Upload subtitles",
      share: "Share",
      password: "Password",
      download: "Download",
    },
  ],
  [
    "de",
    {
      token: "Admin-Token oder API-Schlüssel",
      assets: "Videos",
      upload: "Untertitel hochladen",
      share: "Teilen",
      password: "Passwort",
      download: "Herunterladen",
    },
  ],
])("dialogs keep their margin on a phone, and shares keep their words in one line: %s", async (locale, words) => {
  await api("POST", `${assetId}/shares`, { name: "Guests", password: "low tide", allow_download: true });
  for (const width of [390, 1200, 1440]) {
    const viewport = { width, height: 900 };
    const { page } = await visit(pages.browser, `${pages.platform.base}/console`, { locale, viewport });
    await page.getByLabel(words.token).fill(pages.platform.admin);
    await page.keyboard.press("Enter");
    await heading(page, words.assets).waitFor();
    await page.goto(`${pages.platform.base}/console/assets/${assetId}`);
    for (const word of [words.password, words.download]) {
      const shown = page.locator("td .row").getByText(word, { exact: true }).first();
      await shown.waitFor();
      const lines = await shown.evaluate((one) => one.getClientRects().length);
      const { height = 99 } = (await shown.boundingBox()) ?? {};
      expect([word, width, lines, height < 30]).toEqual([word, width, 1, true]);
    }
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    for (const [tab, name] of [
      ["overview", words.share],
      ["subtitles", words.upload],
    ] as const) {
      await page.goto(`${pages.platform.base}/console/assets/${assetId}?tab=${tab}`);
      await page.getByRole("button", { name, exact: true }).first().click();
      const dialog = page.locator("dialog[open]");
      await dialog.waitFor();
      const { scrollWidth, clientWidth, spaces } = await dialog.evaluate((one: any) => {
        const { right } = one.getBoundingClientRect();
        const inside = [...one.querySelectorAll("input, select, button")].map(
          (field: any) => right - field.getBoundingClientRect().right,
        );
        return { scrollWidth: one.scrollWidth, clientWidth: one.clientWidth, spaces: inside };
      });
      expect([name, width, scrollWidth]).toEqual([name, width, clientWidth]);
      expect(Math.min(...spaces)).toBeGreaterThanOrEqual(16);
    }
    await page.context().close();
  }
});

nightly("axe finds nothing in any section, light and dark, wide and narrow", async () => {
  await subtitled(pages.platform, pages.platform.key, assetId, { language: "sv", label: "Svenska" }, VTT);
  await api("PUT", `${assetId}/tracks`, {
    kind: "chapter",
    cues: [{ start_ms: 0, payload: { title: "Arrival" } }],
  });
  await api("PATCH", `${assetId}/tags`, { place: "Sylt" });
  await api("POST", `${assetId}/shares`, { name: "Embed", max_plays: 5, allow_download: true });
  for (const { colorScheme, width } of APPEARANCES) {
    const { page } = await signedIn(pages.browser, pages.platform.base, pages.platform.admin, {
      colorScheme,
      viewport: { width, height: 900 },
      bypassCSP: true,
    });
    for (const [name, content] of Object.entries({
      overview: page.getByLabel("Embed code"),
      subtitles: page.getByText("Svenska", { exact: true }),
      chapters: page.getByRole("button", { name: /^Arrival/ }),
      poster: page.getByRole("button", { name: "Frame at 0:04" }),
      renditions: page.getByText("4 s each").first(),
      clip: page.getByRole("button", { name: "Create clip" }),
      organize: page.getByLabel("Collection"),
      history: page.locator(".history li").first(),
    })) {
      await page.goto(`${pages.platform.base}/console/assets/${assetId}?tab=${name}`);
      await content.waitFor();
      if (name === "chapters") await content.click();
      if (name === "subtitles") {
        await button(page, "Edit").last().click();
        await page.getByLabel("Text of cue 1").waitFor();
      }
      expect(await axeFaults(page, { iframes: false }), `${name} ${colorScheme} ${width}`).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth"), name).toBeLessThanOrEqual(width);
    }
    await page.context().close();
  }
});
