import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { App } from "#app.ts";
import { playbackTokens } from "#features/playback/token.ts";
import { sharedBrowser, untilPlayed, visit } from "#test/support/browser/browser.ts";
import { type Platform, SIGNING_SECRET, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { atEnd } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { axeFaults } from "./axe.ts";
import { ask, customersPage, inTwoLanguages, until } from "./element.ts";

const EVIL = `</title></script><script>window.evil = 1</script>"'><img src=x onerror="window.evil = 2">`;

let platform: Platform;
let browser: Browser;
let open: any;
let signed: any;
/** Not processed, with all metadata that its sender can set. */
let broken: any;
/** In two languages. */
let spoken: any;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  const { key, as, clip: bytes } = platform;
  open = (
    await uploaded(platform, key, {
      bytes,
      playback_policy: "public",
      title: EVIL,
      filename: `${EVIL.replaceAll("/", "")}.mp4`,
    })
  ).asset;
  signed = (await uploaded(platform, key, { bytes, playback_policy: "signed", title: "Private film" })).asset;
  spoken = (await uploaded(platform, key, { bytes: inTwoLanguages(), playback_policy: "public", filename: "two.mkv" }))
    .asset;
  await Promise.all([open, signed, spoken].map(({ id }) => untilReady(platform, id)));
  const evil = { title: EVIL, description: EVIL, filename: `${EVIL.replaceAll("/", "")}.txt` };
  broken = (await uploaded(platform, key, { bytes: EVIL, playback_policy: "public", ...evil })).asset;
  await expect(untilReady(platform, broken.id)).rejects.toThrow();
  const { admin } = platform;
  await as({ admin }).updateTenant(open.tenant_id, { name: EVIL });
  await as(key).createCollection({ tenant_id: 1, collection: { name: EVIL, slug: "evil" } });
  await as(key).updateTags(open.id, { note: EVIL });
  const cue = `WEBVTT\n\n00:00.000 --> 00:08.000\n${EVIL}\n`;
  await subtitled(platform, key, open.id, { label: EVIL.slice(0, 90) }, cue);
  await subtitled(platform, key, open.id, { language: "de", label: "Deutsch" }, cue);
  const cues = [EVIL, "Middle", "End"].map((title, index) => ({ start_ms: index * 3000, payload: { title } }));
  const made = await as(key).setTrack(open.id, { kind: "chapter", name: "c", cues });
  expect(made.status).toBe(201);
});
afterAll(async () => {
  await platform?.close();
});

const element = (attributes: string) =>
  `<script src="${platform.base}/svc-player.js"></script><svc-player ${attributes}></svc-player>`;
const withElement = async (attributes: string) => visit(browser, await customersPage(element(attributes)));

const tokenFor = (seconds: number) => {
  const clock = { now: () => Date.now() };
  const tokens = playbackTokens({ secrets: { signing_secret: SIGNING_SECRET }, clock } as unknown as App);
  const bound = { id: signed.id, tenantId: signed.tenant_id, externalId: signed.external_id };
  return tokens.sign(bound, Date.now() + seconds * 1000);
};
const showControls = async (page: Page) => {
  await page.mouse.move(300, 200);
  await page.mouse.move(310, 210);
};

describe("<svc-player> on another site", () => {
  test("is a media element: attributes, properties, events, and it ends", async () => {
    const seen = await withElement(
      `playback-id="${open.id}" start-time="5" muted preload="auto" video-title="Mine" accent-color="rgb(200, 30, 60)" poster="data:image/gif;base64,R0lGODlhAQABAAAAACw="`,
    );
    await until(seen, "return player.readyState >= 3");
    expect(
      await ask(
        seen,
        `window.emitted = []; for (const name of ["play", "playing", "timeupdate", "seeked", "pause", "ratechange", "volumechange", "ended"])
           player.addEventListener(name, () => window.emitted.at(-1) !== name && window.emitted.push(name));
         return [player.paused, player.muted, Math.round(player.currentTime), Math.round(player.duration), player.error, player.preload, player.poster.slice(0, 5)]`,
      ),
    ).toEqual([true, true, 5, 8, null, "auto", "data:"]);
    await ask(seen, "player.playbackRate = 2; return player.play()");
    await until(seen, "return player.ended");
    expect(await ask(seen, "return window.emitted")).toEqual(
      expect.arrayContaining(["play", "playing", "ratechange", "ended"]),
    );
    const shown = await ask(
      seen,
      `const root = player.shadowRoot; return [root.querySelector(".title").textContent, root.querySelector("media-controller").style.getPropertyValue("--_accent"), getComputedStyle(root.querySelector("media-controller")).getPropertyValue("--media-range-bar-color")]`,
    );
    expect(shown).toEqual(["Mine", "rgb(200, 30, 60)", "rgb(200, 30, 60)"]);
    expect(seen.requests.some(({ pathname }) => pathname.endsWith("/playback_events"))).toBe(true);
    expect(seen.faults).toEqual([]);
  });

  test("is controlled by mouse: play, mute, captions, speed, quality, timeline with thumbnails and chapters, full screen", async () => {
    const seen = await withElement(`playback-id="${open.external_id}" loop disable-tracking`);
    const { page } = seen;
    page.setDefaultTimeout(60_000);
    const click = (name: string) => page.locator(`svc-player ${name}`).click();
    await until(seen, "return player.readyState >= 2");
    await click(".middle");
    await until(seen, "return !player.paused && player.currentTime > 0.1");
    await click("media-control-bar media-play-button");
    await until(seen, "return player.paused");
    await click("media-mute-button");
    await until(seen, "return player.muted");
    await page.locator("svc-player media-volume-range").click({ position: { x: 30, y: 12 } });
    await until(seen, "return player.volume < 0.9 && player.volume > 0.1 && !player.muted");
    expect(await page.locator("svc-player media-audio-track-menu-button").isVisible()).toBe(false);
    await click("media-captions-menu-button");
    await page.getByRole("menuitemradio", { name: "Deutsch" }).click();
    await until(
      seen,
      `return [...player.textTracks].some((each) => each.mode === "showing" && each.label === "Deutsch" && each.activeCues?.length)`,
    );
    await click("media-playback-rate-menu-button");
    await page.getByRole("menuitemradio", { name: "1.5x" }).click();
    await until(seen, "return player.playbackRate === 1.5");
    await click("media-rendition-menu-button");
    await page.getByRole("menuitemradio", { name: "240p" }).click();
    await until(seen, "return player.video.videoRenditions.selectedIndex === 0");

    const box = await page.locator("svc-player media-time-range").boundingBox();
    if (!box) throw new Error("There is not a timeline");
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await until(
      seen,
      `return player.shadowRoot.querySelector("media-time-range").shadowRoot.querySelector("media-preview-chapter-display").mediaPreviewChapter === "Middle"`,
    );
    await until(
      seen,
      `return player.shadowRoot.querySelector("media-time-range").shadowRoot.querySelector("media-preview-thumbnail").shadowRoot.querySelector("img").naturalWidth > 0`,
    );
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await until(seen, "return Math.abs(player.currentTime - 4) < 0.5");
    await click("media-seek-backward-button");
    await until(seen, "return player.currentTime < 1");
    await click("media-fullscreen-button");
    await until(seen, "return document.fullscreenElement === player");
    await click("media-fullscreen-button");
    await until(seen, "return !document.fullscreenElement");
    expect(await page.locator("svc-player media-pip-button").isVisible()).toBe(
      await page.evaluate("document.pictureInPictureEnabled"),
    );
    expect(seen.requests.filter(({ pathname }) => pathname.endsWith("/playback_events"))).toEqual([]);
    expect(await page.evaluate("window.evil")).toBeUndefined();
    expect(seen.faults).toEqual([]);
  });

  test("is controlled by keyboard", async () => {
    const seen = await withElement(`playback-id="${open.external_id}" muted`);
    const { keyboard } = seen.page;
    await until(seen, "return player.readyState >= 2");
    await seen.page.locator("svc-player media-control-bar media-play-button").focus();
    await keyboard.press("Enter");
    await until(seen, "return !player.paused");
    await keyboard.press("k");
    await until(seen, "return player.paused");
    await keyboard.press("m");
    await until(seen, "return !player.muted");
    await keyboard.press("c");
    await until(seen, `return [...player.textTracks].some((each) => each.mode === "showing")`);
    await ask(seen, "player.currentTime = 0");
    await keyboard.press("ArrowRight");
    await until(seen, "return player.currentTime > 5");
    const focus = (name: string) => seen.page.locator(`svc-player ${name}`).focus();
    await focus("media-time-range");
    const before = await ask<number>(seen, "return player.currentTime");
    await keyboard.press("ArrowLeft");
    await until(seen, `return player.currentTime < ${before}`);
    await focus("media-volume-range");
    await keyboard.press("ArrowDown");
    await until(seen, "return player.volume < 1");
    const chosen: [menu: string, key: string, isChosen: string][] = [
      [
        "captions",
        "End",
        `[...player.textTracks].some(({ mode, language }) => mode === "showing" && language === "en")`,
      ],
      ["playback-rate", "End", "player.playbackRate === 2"],
      ["rendition", "Home", "player.video.videoRenditions.selectedIndex >= 0"],
    ];
    for (const [menu, key, isChosen] of chosen) {
      await focus(`media-${menu}-menu-button`);
      await keyboard.press("Enter");
      await until(seen, `return player.shadowRoot.activeElement?.localName === "media-${menu}-menu"`);
      await keyboard.press(key);
      await keyboard.press("Enter");
      await until(seen, `return ${isChosen}`);
      await keyboard.press("Escape");
    }
    await keyboard.press("f");
    await until(seen, "return document.fullscreenElement === player");
    // Every visible control is reachable by keyboard, and shows its focus.
    const reached = new Set<string>();
    await ask(seen, "document.exitFullscreen(); document.activeElement?.blur()");
    for (let presses = 0; presses < 16; presses++) {
      await keyboard.press("Tab");
      reached.add(await ask(seen, "return player.shadowRoot.activeElement?.localName"));
    }
    for (const name of [
      "play-button",
      "mute-button",
      "time-range",
      "captions-menu-button",
      "rendition-menu-button",
      "fullscreen-button",
    ])
      expect(reached, name).toContain(`media-${name}`);
    expect(seen.faults).toEqual([]);
  });
});

test("a video in several languages has a menu of them, by mouse and by keyboard, and playback continues", async () => {
  const seen = await withElement(`playback-id="${spoken.external_id}" disable-tracking`);
  const { page } = seen;
  await until(seen, "return player.readyState >= 2");
  await page.locator("svc-player .middle").click();
  await until(seen, "return player.currentTime > 0.5");
  const heard = (label: string) =>
    until(seen, `return player.video.audioTracks.find((each) => each.enabled)?.label === "${label}"`);
  const soundGoesOn = async () => {
    const { at, bytes } = await ask<any>(
      seen,
      "return { at: player.currentTime, bytes: player.video.webkitAudioDecodedByteCount }",
    );
    await until(seen, `return player.currentTime > ${at} && player.video.webkitAudioDecodedByteCount > ${bytes}`);
  };
  await heard("English");
  await showControls(page);
  await page.locator("svc-player media-audio-track-menu-button").click();
  await page.getByRole("menuitemradio", { name: "German" }).click();
  await heard("German");
  await expect
    .poll(() => seen.requests.some(({ pathname }) => /\/audio-2\/\d+\.m4s$/.test(pathname)), { timeout: 60_000 })
    .toBe(true);
  await soundGoesOn();
  await page.locator("svc-player media-audio-track-menu-button").focus();
  await page.keyboard.press("Enter");
  await until(seen, `return player.shadowRoot.activeElement?.localName === "media-audio-track-menu"`);
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await heard("English");
  await soundGoesOn();
  expect(seen.faults).toEqual([]);
});

nightly("works where a browser has read-only lists of its own", async () => {
  const seen = await visit(browser, "about:blank");
  await seen.page.addInitScript(
    `for (const name of ["audioTracks", "videoTracks"])
       Object.defineProperty(HTMLMediaElement.prototype, name, { get: () => new EventTarget() })`,
  );
  await seen.page.goto(`${platform.base}/watch/${open.external_id}?autoplay=1`);
  await untilPlayed(seen.page, 0.5);
  expect(seen.faults).toEqual([]);
});

describe("tokens", () => {
  test("errors are shown, in the page's language, and a valid token or a network recovers", async () => {
    const rows: [token: string | null, reason: string, words: string][] = [
      [null, "playback_token_required", "Dieses Video ist privat."],
      [await tokenFor(-10), "playback_token_expired", "Dieser Link ist abgelaufen."],
      ["nonsense", "playback_token_invalid", "Dieser Link gilt nicht"],
    ];
    const seen = await withElement(`lang="de" playback-id="${signed.external_id}" muted disable-tracking`);
    for (const [token, reason, words] of rows) {
      if (token) await ask(seen, `player.setAttribute("playback-token", "${token}")`);
      await until(seen, `return player.error?.reason === "${reason}"`);
      expect(await seen.page.getByRole("alert").textContent()).toContain(words);
    }
    await ask(seen, `player.setAttribute("playback-id", "vid_nothing")`);
    await until(seen, `return player.error?.reason === "not_found"`);
    await ask(seen, `player.token = "${await tokenFor(600)}"; player.setAttribute("playback-id", "${signed.id}")`);
    await until(seen, "return player.error === null && player.readyState >= 2");

    await seen.page.context().setOffline(true);
    await ask(seen, `player.setAttribute("playback-id", "${open.id}")`);
    await until(seen, `return player.error?.reason === "network" && player.error.code === 2`);
    await seen.page.context().setOffline(false);
    await until(seen, "return player.error === null && player.readyState >= 2");
  });
});

test("axe finds nothing, with menus open, in messages, and on the pages", async () => {
  const seen = await withElement(`playback-id="${open.external_id}" video-title="Film" disable-tracking`);
  await until(seen, "return player.readyState >= 2");
  await showControls(seen.page);
  expect(await axeFaults(seen.page)).toEqual([]);
  for (const menu of ["captions", "playback-rate", "rendition"]) {
    await seen.page.locator(`svc-player media-${menu}-menu-button`).click();
    expect(await axeFaults(seen.page), menu).toEqual([]);
  }
  await ask(seen, `player.setAttribute("playback-id", "vid_nothing")`);
  await until(seen, "return player.error !== null");
  expect(await axeFaults(seen.page)).toEqual([]);
  for (const address of [
    `watch/${open.external_id}`,
    `embed/${open.external_id}`,
    `watch/${signed.external_id}`,
    "watch/vid_nothing",
  ])
    for (const colorScheme of ["dark", "light"] as const) {
      const context = await browser.newContext({ colorScheme, bypassCSP: true });
      atEnd(() => context.close());
      const page = await context.newPage();
      await page.goto(`${platform.base}/${address}`);
      expect(await axeFaults(page), `${address} ${colorScheme}`).toEqual([]);
      await context.close();
    }
});

test("text from clients is never executed, on the pages and elsewhere", async () => {
  const oembed = `oembed?url=${encodeURIComponent(`${platform.base}/watch/${open.external_id}`)}`;
  const media = `media/${open.external_id}`;
  const data: any = await (await fetch(`${platform.base}/embed/${open.external_id}/player.json`)).json();
  const texts = [
    `${oembed}`,
    `${oembed}&format=xml`,
    `embed/${open.external_id}/player.json`,
    `${media}/master.m3u8`,
    `${media}/manifest.mpd`,
    ...data.subtitles.map(({ url }: any) => url.slice(1)),
    data.storyboard_url.slice(1),
    `oembed?url=${encodeURIComponent(EVIL)}`,
    `embed/${encodeURIComponent(EVIL)}/player.json`,
    `media/${encodeURIComponent(EVIL)}/master.m3u8`,
  ];
  const refused = texts.slice(-3);
  for (const path of texts) {
    const answer = await fetch(`${platform.base}/${path}`);
    expect(answer.ok, path).toBe(!refused.includes(path));
    // Not rendered as markup, neither because of its type nor by content sniffing.
    expect(answer.headers.get("content-type"), path).not.toMatch(/html|svg/);
    if (answer.ok) expect(answer.headers.get("x-content-type-options"), path).toBe("nosniff");
  }
  for (const path of [`watch/${open.external_id}`, `embed/${open.external_id}`]) {
    const seen = await visit(browser, `${platform.base}/${path}?autoplay=1`);
    await until(seen, "return player.currentTime > 0.2");
    await ask(seen, `for (const each of player.textTracks) each.mode = "showing"`);
    await until(
      seen,
      `return [...player.textTracks].filter((each) => each.kind === "subtitles").every((each) => each.activeCues?.length)`,
    );
    expect(await seen.page.evaluate("window.evil")).toBeUndefined();
    expect(seen.faults).toEqual([]);
  }
  const page = await (await browser.newContext()).newPage();
  const word = encodeURIComponent(EVIL);
  const pages = [
    `watch/${broken.external_id}`,
    `embed/${broken.external_id}`,
    `watch/${word}`,
    `watch/${open.external_id}?token=${word}&start_time=${word}&autoplay=${word}`,
    `embed/${signed.external_id}?token=${word}`,
    `docs?${word}#${word}`,
  ];
  for (const path of [...texts, ...pages]) {
    await page.goto(`${platform.base}/${path}`).catch(() => {});
    expect(await page.evaluate("window.evil"), path).toBeUndefined();
  }
  expect(await (await fetch(`${platform.base}/watch/${broken.external_id}`)).text()).toContain(
    "could not be processed",
  );
  // As embedded in a page of another site.
  const { html }: any = await (await fetch(`${platform.base}/${oembed}`)).json();
  await page.setContent(html);
  expect(await page.locator("iframe").getAttribute("title")).toBe(open.title);
  expect(await page.evaluate("window.evil")).toBeUndefined();
  // With a key: responses contain names of tenants, collections, files and tracks.
  for (const path of ["tenants", "collections", "collections/tree", "assets", "assets/export", "assets/graph_export"]) {
    const headers = { "x-api-key": platform.key };
    const answer = await fetch(`${platform.base}/api/v1/${path}`, { headers });
    expect(await answer.text(), path).toContain("window.evil");
    expect(answer.headers.get("content-type"), path).toMatch(/^(application\/json|text\/csv)/);
  }
  await page.context().close();
});
