import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { App } from "#app.ts";
import { playbackTokens } from "#features/playback/token.ts";
import { sharedBrowser, untilPlayed, untilVideo, type Visit, videoIn, visit } from "#test/support/browser/browser.ts";
import { type Platform, SIGNING_SECRET, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { atEnd } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { customersPage } from "./element.ts";

/** Would be executed in a page that did not escape it, in text or in an attribute. */
const EVIL = `</title><script>window.evil = 1</script>"'><img src=x onerror="window.evil = 2">`;

let platform: Platform;
let browser: Browser;
let open: any;
let signed: any;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  const { key, clip: bytes } = platform;
  const evil = { title: `A walk ${EVIL}`, description: `First line\n${EVIL}` };
  open = (await uploaded(platform, key, { bytes, playback_policy: "public", ...evil })).asset;
  signed = (await uploaded(platform, key, { bytes, playback_policy: "signed", title: "Private film" })).asset;
  await Promise.all([untilReady(platform, open.id), untilReady(platform, signed.id)]);
});
afterAll(async () => {
  await platform?.close();
});

const watch = (asset: { external_id: string }, query = "") => `${platform.base}/watch/${asset.external_id}${query}`;
const tokenOf = async (asset: { id: number }) =>
  (await platform.as(platform.key).getPlayback(asset.id)).body.token as string;
const textOf = ({ page }: Visit) => page.locator("body").textContent();
/** The directories of the fetched segments, which are the renditions that were played. */
const renditions = ({ requests }: Visit) =>
  new Set(requests.map(({ pathname }) => /\/(\d+p)\/\d+\.m4s$/.exec(pathname)?.[1]).filter(Boolean));

/** No errors, and no requests to other servers. */
function expectClean({ faults, requests }: Visit): void {
  expect(faults).toEqual([]);
  expect(new Set(requests.map((url) => url.origin))).toEqual(new Set([platform.base]));
}

describe("the watch page", () => {
  test("shows its poster until the controls replace it, and plays without a poster that never arrives", async () => {
    const context = await browser.newContext();
    atEnd(() => context.close());
    const page = await context.newPage();
    await page.route(/svc-player\.js/, (route) => route.abort());
    await page.goto(watch(open));
    const poster = page.locator("svc-player > img");
    expect((await poster.boundingBox())?.width).toBeGreaterThan(100);
    await page.unroute(/svc-player\.js/);
    await page.route(/thumbnail\./, () => {});
    await page.goto(watch(open, "?autoplay=1"), { waitUntil: "commit" });
    await untilPlayed(page, 2);
    // It is replaced.
    expect(await poster.boundingBox()).toBeNull();
  });

  test("plays a signed video: the page's token is in the path of every request", async () => {
    const token = await tokenOf(signed);
    const seen = await visit(browser, watch(signed, `?autoplay=1&token=${token}`));
    await untilPlayed(seen.page, 2);
    const segments = seen.requests.filter(({ pathname }) => pathname.endsWith(".m4s"));
    expect(segments.length).toBeGreaterThan(1);
    for (const { pathname } of segments) expect(pathname).toContain(`/~${token}/`);
    expectClean(seen);
  });

  nightly("shows the subtitles of a signed video, the default ones from the start", async () => {
    const { key, as } = platform;
    await subtitled(platform, key, signed.id, {}, "WEBVTT\n\n00:00.000 --> 00:08.000\nHello\n");
    const german = "WEBVTT\n\n00:00.000 --> 00:08.000\nHallo\n";
    const made = await subtitled(
      platform,
      key,
      signed.id,
      { language: "de", label: "Deutsch", is_default: "1" },
      german,
    );
    const seen = await visit(browser, watch(signed, `?autoplay=1&token=${await tokenOf(signed)}`));
    await untilPlayed(seen.page, 2);
    const shown = await seen.page.evaluate(() =>
      [...(globalThis as any).document.querySelector("svc-player").textTracks]
        .filter((track: any) => track.kind === "subtitles")
        .map((track: any) => [
          track.language,
          track.label,
          track.mode,
          [...(track.activeCues ?? [])].map((cue: any) => cue.text),
        ]),
    );
    expect(shown).toEqual([
      ["de", "Deutsch", "showing", ["Hallo"]],
      ["en", "English", "disabled", []],
    ]);
    expectClean(seen);
    await as(key).deleteSubtitle(signed.id, made.id);
  });

  test("reports playback: one play, one viewer, and the time", async () => {
    // Pages of other tests report what they played of theirs, also late.
    const fields = { bytes: platform.clip, playback_policy: "signed", title: "Counted film" };
    const film = (await uploaded(platform, platform.key, fields)).asset as { id: number; external_id: string };
    await untilReady(platform, film.id);
    const views = async () => (await platform.as(platform.key).getAssetAnalytics(film.id)).body;
    const before = await views();
    const query = `?autoplay=1&token=${await tokenOf(film)}`;
    const seen = await visit(browser, watch(film, query));
    // So near the end that the next visit begins at the start.
    await untilPlayed(seen.page, 7.7);
    await seen.page.reload();
    await untilPlayed(seen.page, 1);
    const second = await seen.page.evaluate(() => {
      const { video } = (globalThis as any).document.querySelector("svc-player");
      video.pause();
      return video.currentTime as number;
    });
    await seen.page.close();
    const watched = (all: any) => all.watch_time_seconds - before.watch_time_seconds;
    const after = await until("both plays are recorded", async () => {
      const now = await views();
      return now.play_count >= before.play_count + 2 && watched(now) > 7 + second - 1 ? now : null;
    });
    expect(after.play_count).toBe(before.play_count + 2);
    expect(after.unique_viewers).toBe(before.unique_viewers + 1);
    // The clip has eight seconds.
    expect(watched(after)).toBeLessThan(8 + second + 1);
    expect(after.completion_rate).toBeGreaterThan(0);
    expect(after.error_count).toBe(before.error_count);
    expectClean(seen);
    for (const refusal of ["analytics=off", "disable_tracking=1"]) {
      const untracked = await visit(browser, watch(film, `${query}&${refusal}`));
      await untilPlayed(untracked.page, 2);
      expect(untracked.requests.filter(({ pathname }) => pathname.endsWith("/playback_events"))).toEqual([]);
      // A browser that must not report is not given an id either.
      expect(await untracked.page.evaluate(() => localStorage.getItem("vodbox-viewer"))).toBe(null);
      await untracked.page.close();
    }
  });

  test("starts when its viewer presses play, and until then fetches little", async () => {
    const seen = await visit(browser, watch(open));
    await untilVideo(seen.page, "readyState", 3);
    expect(await videoIn(seen.page)).toMatchObject({ paused: true, currentTime: 0 });
    expect(seen.requests.filter(({ pathname }) => pathname.includes("p/00002"))).toEqual([]);
    await seen.page.locator("svc-player").click();
    // The second segment begins at four seconds.
    await untilPlayed(seen.page, 4.5);
    expectClean(seen);
  });

  test("selects the rendition that fits: the small one in a small window, the largest in a large one", async () => {
    const small = await visit(browser, watch(open, "?autoplay=1"), { viewport: { width: 320, height: 480 } });
    await untilPlayed(small.page, 4.5);
    expect(renditions(small)).toEqual(new Set(["240p"]));

    const large = await visit(browser, watch(open, "?autoplay=1"), { viewport: { width: 1280, height: 800 } });
    await untilVideo(large.page, "videoHeight", 360);
    expect(renditions(large)).toContain("360p");
    expectClean(small);
    expectClean(large);
  });

  test("shows texts of tenants as text", async () => {
    const seen = await visit(browser, watch(open));
    expect(await seen.page.title()).toBe(open.title);
    expect(await seen.page.locator("h1").textContent()).toBe(open.title);
    expect(await seen.page.locator(".description").textContent()).toBe(open.description);
    expect(await seen.page.evaluate("window.evil")).toBeUndefined();
    expect(await seen.page.locator("img[onerror]").count()).toBe(0);
    expectClean(seen);
  });

  test("says that a private video needs a link, without its title", async () => {
    const seen = await visit(browser, watch(signed));
    expect(seen.status).toBe(403);
    expect(await textOf(seen)).toContain("This video is private");
    expect(await seen.page.content()).not.toContain("Private film");
    expect(seen.requests.map(String)).toEqual([watch(signed)]);
    expectClean(seen);
  });

  test("says that a link has expired or is invalid", async () => {
    const now = () => Date.now();
    const tokens = playbackTokens({ secrets: { signing_secret: SIGNING_SECRET }, clock: { now } } as unknown as App);
    const bound = { id: signed.id, tenantId: signed.tenant_id, externalId: signed.external_id };
    const expired = await tokens.sign(bound, now() - 1000);
    for (const token of [expired, "x", await tokenOf(open)]) {
      const seen = await visit(browser, watch(signed, `?token=${token}`));
      expect(seen.status).toBe(403);
      expect(await textOf(seen)).toContain("This link has expired");
      expectClean(seen);
    }
    const valid = await visit(browser, watch(signed, `?token=${await tokens.sign(bound, now() + 60_000)}`));
    expect(valid.status).toBe(200);
  });

  test("checks again by itself until its video is ready, and then plays it", async () => {
    const { as, call, key, clip } = platform;
    const body = { filename: "late.mp4", bytes_expected: clip.length, playback_policy: "public" };
    const upload = (await as(key).initiateUpload(body)).body;
    const seen = await visit(browser, watch(upload, "?autoplay=1"));
    expect(seen.status).toBe(200);
    expect(await textOf(seen)).toContain("It has not been uploaded yet");
    await call("PUT", upload.upload_url, { raw: new Uint8Array(clip) });
    await as(key).completeUpload(upload.id, { bytes_received: clip.length });
    await untilPlayed(seen.page, 2);
    expectClean(seen);
  });

  nightly("says so when the media are refused", async () => {
    const seen = await visit(browser, "about:blank");
    await seen.page.route("**/*.m4s", (route) => route.fulfill({ status: 403, body: "" }));
    await seen.page.goto(watch(open, "?autoplay=1"));
    expect(await seen.page.getByRole("alert").textContent()).toContain(
      "This video is private. It needs a playback token.",
    );
  });

  nightly("says that there is no such video", async () => {
    const seen = await visit(browser, `${platform.base}/watch/vid_nothing`);
    expect(seen.status).toBe(404);
    expect(await textOf(seen)).toContain("Video not found");
    expectClean(seen);
  });
});

describe("the embed page", () => {
  /** A page on another site, with `address` in a frame. */
  async function frameOf(address: string) {
    const host = createServer((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<!doctype html><iframe src="${address}" width="640" height="360" allow="autoplay"></iframe>`);
    });
    await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
    atEnd(() => host.closeAllConnections());
    atEnd(() => host.close());
    const site = `http://localhost:${(host.address() as AddressInfo).port}`;
    const seen = await visit(browser, site);
    const frame = seen.page.frames().find((each) => each !== seen.page.mainFrame());
    if (!frame) throw new Error("The page has no frame");
    return { seen, frame, site };
  }

  nightly("plays in a frame on another site", async () => {
    const { seen, frame, site } = await frameOf(`${platform.base}/embed/${open.external_id}?autoplay=1`);
    await untilPlayed(frame, 2);
    expect(seen.faults).toEqual([]);
    const asked = seen.requests.filter((url) => url.origin !== site).map((url) => url.origin);
    expect(new Set(asked)).toEqual(new Set([platform.base]));
    const box = await frame.locator("svc-player").boundingBox();
    expect(box).toMatchObject({ width: 640, height: 360 });
    expect(await videoIn(frame)).toMatchObject({ muted: true });
  });

  test("plays a signed video there with the token in its URL, and without one says what is missing", async () => {
    const address = `${platform.base}/embed/${signed.external_id}?autoplay=1`;
    const { frame, seen } = await frameOf(`${address}&token=${await tokenOf(signed)}`);
    await untilPlayed(frame, 1);
    expect(await videoIn(frame)).toMatchObject({ muted: true });
    expect(seen.faults).toEqual([]);
    const without = await frameOf(address);
    expect(await without.frame.locator("body").textContent()).toContain("This video is private");
    expect(await without.frame.locator("svc-player").count()).toBe(0);
  });

  test("is shown on the sites that the tenant allows, and on no other", async () => {
    const { admin, as } = platform;
    const allow = async (allowed_origins: string[]) =>
      (await as({ admin }).updateTenant(open.tenant_id, { allowed_origins })).status;
    const address = `${platform.base}/embed/${open.external_id}?autoplay=1`;
    expect(await allow(["https://www.example.com"])).toBe(200);
    const refused = await frameOf(address);
    expect(await refused.frame.locator("svc-player").count()).toBe(0);
    expect(refused.seen.faults.join()).toMatch(/frame-ancestors/);
    expect(await allow(["*"])).toBe(200);
    const { frame } = await frameOf(address);
    await untilPlayed(frame, 0.5);
  });

  test("is the only page that can be framed", async () => {
    const { frame, seen } = await frameOf(watch(open));
    expect(await frame.locator("svc-player").count()).toBe(0);
    expect(seen.faults.join()).toMatch(/frame-ancestors/);
  });
});

const library = (path: string) => readFileSync(join(import.meta.dirname, "../../../node_modules", path), "utf8");

describe("plain URLs", () => {
  const source = async (asset: any) => (await platform.as(platform.key).getPlayback(asset.id)).body;

  test.each(["open", "signed"])("play in hls.js, dash.js and Shaka, with their subtitles, %s", async (which) => {
    const asset = which === "open" ? open : signed;
    const languages = (
      await Promise.all(
        ["eo", "la"].map((language) => subtitled(platform, platform.key, asset.id, { language, label: language })),
      )
    ).map(({ language }) => language);
    const { hls_url, dash_url } = await source(asset);
    const players = [
      ["hls.js/dist/hls.min.js", `const hls = new Hls(); hls.loadSource("${hls_url}"); hls.attachMedia(video);`],
      [
        "dashjs/dist/modern/umd/dash.all.min.js",
        `const p = dashjs.MediaPlayer().create(); p.initialize(video, "${dash_url}", false);
         window.languages = () => p.getTracksFor("text").map(({ lang }) => lang);`,
      ],
      [
        "shaka-player/dist/shaka-player.compiled.js",
        `const p = new shaka.Player(); p.attach(video).then(() => p.load("${dash_url}"));
         window.languages = () => p.getTextTracks().map(({ language }) => language);`,
      ],
      [
        "shaka-player/dist/shaka-player.compiled.js",
        `const p = new shaka.Player(); p.attach(video).then(() => p.load("${hls_url}"));`,
      ],
    ];
    const site = await customersPage("<video muted></video>");
    await Promise.all(
      players.map(async ([path = "", start]) => {
        const seen = await visit(browser, site);
        await seen.page.addScriptTag({ content: library(path) });
        // Before the player starts: with a listener added later, `canplay` may be over.
        await seen.page.evaluate(
          `{
            const video = document.querySelector("video");
            video.addEventListener("canplay", () => void video.play().catch(() => {}));
            ${start};
            void video.play().catch(() => {});
          }`,
        );
        await untilPlayed(seen.page, 5);
        expect((await videoIn(seen.page))?.videoWidth, path).toBeGreaterThan(0);
        const listed = await seen.page.evaluate<string[] | null>("window.languages?.() ?? null");
        if (listed) expect(listed, path).toEqual(expect.arrayContaining(languages));
        else expect(start).toContain(hls_url);
        await seen.page.close();
      }),
    );
  });
});
