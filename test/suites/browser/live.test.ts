import type { Page, Route } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sharedBrowser, untilPlayed, videoIn, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady, uploadClip } from "#test/support/browser/platform.ts";
import { atEnd } from "#test/support/folder.ts";
import { publish as publishTo } from "#test/support/live.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf } from "#test/support/process.ts";
import { axeFaults } from "./axe.ts";
import { ask, customersPage, until } from "./element.ts";
import { newTimeline, publish, serveStream, sourceTracks } from "./served-stream.ts";

const SECONDS = 20;

let platform: Platform;
let browser: Awaited<ReturnType<typeof sharedBrowser>>;
let tracks: Awaited<ReturnType<typeof sourceTracks>>;
let recording: string;
let rtmp: string;
beforeAll(async () => {
  [platform, browser, tracks] = await Promise.all([
    startPlatform({ VODBOX_RTMP_PORT: "0" }),
    sharedBrowser(),
    sourceTracks(SECONDS),
  ]);
  const { key, as } = platform;
  const id = await uploadClip(platform, { playback_policy: "public", title: "The recording" });
  await untilReady(platform, id);
  recording = (await as(key).getAsset(id)).body.external_id;
  await newChannel("stage", "public");
  rtmp = (await lineOf(platform, /^live streams to (rtmp:\S+)$/m))[1] as string;
});
afterAll(async () => {
  await platform?.close();
});

type State = {
  status: string;
  hls_url: string | null;
  viewers: number;
  started_at: string | null;
  recording: object | null;
};
let state: State;
beforeEach(() => {
  state = { status: "idle", hls_url: null, viewers: 0, started_at: null, recording: null };
});
const goLive = (started_at = new Date().toISOString()) =>
  Object.assign(state, { status: "live", hls_url: "/live/stage/master.m3u8", viewers: 3, started_at, recording: null });
const end = (more: Partial<State> = {}) =>
  Object.assign(state, { status: "ended", hls_url: null, viewers: 0, ...more });

const ANY_ORIGIN = { "access-control-allow-origin": "*" };

/** Answers requests for the channel: its state is `state`, its media are those of a stream. Returns the former. */
async function stage(page: Page, media?: string): Promise<{ states: number[] }> {
  const seen: { states: number[] } = { states: [] };
  const headers = ANY_ORIGIN;
  await page.route(`${platform.base}/live/stage/**`, async (route: Route) => {
    const url = new URL(route.request().url());
    if (url.pathname.endsWith("/state.json")) {
      seen.states.push(Date.now());
      if (state.status === "unavailable") return route.fulfill({ status: 503, headers, json: { code: "unavailable" } });
      return route.fulfill({ json: { title: "Main stage", playback_policy: "public", ...state }, headers });
    }
    const address = new URL(url.pathname.replace("/live/stage/", "/") + url.search, media);
    try {
      await route.fulfill({ response: await route.fetch({ url: address.href }) });
    } catch {
      // The player has aborted it, or the page is closed.
    }
  });
  return seen;
}

/** Expression: the element with the time that is shown. */
const TIME = `player.shadowRoot.querySelector("media-time-display").shadowRoot.querySelector("slot")`;
const notice = (page: Page, text: string) => page.getByRole("status").filter({ hasText: text }).waitFor();
const showControls = async (page: Page) => {
  await page.mouse.move(300, 200);
  await page.mouse.move(310, 210);
};

async function newChannel(channel: string, playback_policy: string) {
  const { as, key } = platform;
  const { body } = await as(key).createChannel({ channel, name: "Stage", playback_policy });
  const tokenOf = async (expires_in: number): Promise<string> =>
    (await as(key).createChannelToken(body.id, { expires_in })).body.token;
  const analytics = async () => (await as(key).getChannelAnalytics(body.id)).body;
  return { channel, stream_key: body.stream_key as string, tokenOf, analytics };
}

describe("the page of a channel, with ffmpeg as publisher", () => {
  test("waits for the stream, plays it, goes back and forth in it, and then has its recording", async () => {
    const channel = await newChannel("open-stage", "public");
    const seen = await visit(browser, `${platform.base}/watch/live/open-stage`);
    const { page } = seen;
    page.setDefaultTimeout(60_000);
    await notice(page, "The stream has not started yet.");

    const { exit } = publishTo({ rtmp }, channel, SECONDS);
    await untilPlayed(page, 1);
    await showControls(page);
    const live = page.getByRole("button", { name: "playing live" });
    await live.waitFor();
    expect(await page.locator("svc-player media-time-display").isVisible()).toBe(false);
    expect(await page.locator("svc-player media-playback-rate-menu-button").isVisible()).toBe(false);
    expect(await ask(seen, "return player.duration")).toBe(Number.POSITIVE_INFINITY);

    await until(seen, "return player.seekable.end(0) > 8");
    await page.getByRole("slider", { name: "seek", exact: true }).press("Home");
    const back = page.getByRole("button", { name: "seek to live" });
    await back.waitFor();
    await until(seen, "return !player.seeking && player.currentTime < 3");
    await until(seen, `return /^-0:\\d\\d$/.test(${TIME}.textContent)`);
    await showControls(page);
    await back.click();
    await live.waitFor();
    await until(seen, "return player.seekable.end(0) - player.currentTime < 4 && !player.paused");
    await showControls(page);
    await page.getByText("1 watching").waitFor();

    await exit;
    await until(seen, `return player.paused && Math.abs(player.duration - ${SECONDS}) < 1`);
    const views = { play_count: 1, unique_viewers: 1, completion_rate: 1, error_count: 0 };
    await expect.poll(channel.analytics).toMatchObject({ ...views, peak_viewers: 1 });
    expect((await channel.analytics()).watch_time_seconds).toBeGreaterThan(5);
    expect((await videoIn(page))?.currentTime).toBe(0);
    await page.locator("svc-player .middle").click();
    await untilPlayed(page, 1);
    expect(await page.getByRole("button", { name: "seek to live" }).isVisible()).toBe(false);
    expect(await ask(seen, `return player.shadowRoot.querySelector("media-controller").ariaLabel`)).toMatch(/^Stage, /);
    expect(seen.faults).toEqual([]);
    expect(new Set(seen.requests.map(({ origin }) => origin))).toEqual(new Set([platform.base]));
  });

  nightly("continues when the publisher has lost its connection and returns", async () => {
    const channel = await newChannel("broken-stage", "public");
    const first = publishTo({ rtmp }, channel, 60);
    const seen = await visit(browser, `${platform.base}/watch/live/broken-stage?autoplay=1`);
    await untilPlayed(seen.page, 3);
    first.child.kill("SIGKILL");
    await first.exit;
    await until(seen, "return player.readyState < 3");
    const stalledAt = (await videoIn(seen.page))?.currentTime ?? 0;
    publishTo({ rtmp }, channel, 60);
    await untilPlayed(seen.page, stalledAt + 3);
    expect(await ask(seen, "return player.duration")).toBe(Number.POSITIVE_INFINITY);
    expect(seen.faults).toEqual([]);
  });

  nightly("plays a signed stream with the token of the page, and with a new one from then on", async () => {
    const channel = await newChannel("signed-stage", "signed");
    const first = await channel.tokenOf(600);
    const second = await channel.tokenOf(1200);
    const { exit } = publishTo({ rtmp }, channel, 12);
    const seen = await visit(browser, `${platform.base}/embed/live/signed-stage?autoplay=1&token=${first}`);
    const media = () => seen.requests.map(({ pathname }) => pathname).filter((path) => path.includes("/180p/"));
    await untilPlayed(seen.page, 2);
    expect(media().length).toBeGreaterThan(2);
    for (const path of media()) expect(path).toContain(`/live/signed-stage/~${first}/`);
    await ask(seen, `player.token = "${second}"`);
    await expect.poll(() => media().at(-1)).toContain(`/~${second}/`);
    await untilPlayed(seen.page, 6);
    expect(media().at(-1)).toContain(`/~${second}/`);
    await exit;
    // Its recording is signed, which this token does not open.
    await notice(seen.page, "The stream has ended.");
    // Another token does not begin another view.
    await expect.poll(channel.analytics).toMatchObject({ play_count: 1, unique_viewers: 1, completion_rate: 1 });
    expect(seen.faults).toEqual([]);

    const expiring = element(`token="${await channel.tokenOf(60)}"`, "signed-stage");
    const ending = await visit(
      browser,
      await customersPage(`${expiring}<script>
      document.querySelector("svc-player").addEventListener("tokenexpiring", ({ detail }) => { window.end = detail.expiresAt; });
    </script>`),
    );
    await until(ending, "return window.end > Date.now()");

    const without = await visit(browser, await customersPage(element("", "signed-stage")));
    await without.page.getByRole("alert").filter({ hasText: "This video is private." }).waitFor();
    expect(await ask(without, "return player.error.reason")).toBe("playback_token_required");
  });
});

/** The first seconds of the source: for a test that does not need more. */
const short = () => tracks.map((track) => ({ ...track, fragments: track.fragments.slice(0, 16) }));

describe("the watch page of a channel", () => {
  test("loads nothing of a stream that has begun before its viewer presses play", async () => {
    const timeline = newTimeline();
    const { url, requests } = await serveStream(timeline, short());
    const published = publish(timeline, short());
    const seen = await visit(browser, "about:blank");
    const { states } = await stage(seen.page, url);
    goLive();
    await seen.page.goto(`${platform.base}/watch/live/stage`);
    await expect.poll(() => states.length).toBe(1);
    await seen.page.locator("svc-player .middle").waitFor();
    expect(requests).toEqual([]);
    await seen.page.locator("svc-player .middle").click();
    await untilPlayed(seen.page, 1);
    await seen.page.close();
    await published;
  });
});

const element = (attributes = "", channel = "stage") =>
  `<script src="${platform.base}/svc-player.js"></script><svc-player live="${channel}" ${attributes}></svc-player>`;

describe("<svc-player live> on another site", () => {
  nightly(
    "returns from a recording that was not played to the next stream; otherwise it offers the stream",
    async () => {
      const timeline = newTimeline();
      const { url } = await serveStream(timeline, tracks);
      const seen = await visit(browser, await customersPage(element("muted")));
      await stage(seen.page, url);
      end({ started_at: "2026-01-01T00:00:00.000Z", recording: { id: recording } });
      await seen.page.reload();
      await until(seen, "return Math.round(player.duration) === 8");
      const published = publish(timeline, tracks);
      goLive();
      await until(seen, "return player.duration === Infinity && player.currentTime > 0.5");

      end({ recording: { id: recording } });
      await published;
      await until(seen, "return Math.round(player.duration) === 8 && player.paused");
      await ask(seen, "player.loop = true; return player.play()");
      await until(seen, "return player.currentTime > 0.5");
      goLive();
      const offer = seen.page.getByRole("button", { name: "seek to live" });
      await showControls(seen.page);
      await offer.waitFor();
      expect(Math.round((await videoIn(seen.page))?.duration ?? 0)).toBe(8);
      await offer.click();
      await until(seen, "return player.video.duration !== 8");
    },
  );

  nightly("opens a stream again that could not be loaded", async () => {
    const timeline = newTimeline();
    const { url } = await serveStream(timeline, short());
    const seen = await visit(browser, await customersPage(element("autoplay")));
    goLive();
    await stage(seen.page, url);
    await seen.page.route("**/master.m3u8", (route) => route.fulfill({ status: 404, headers: ANY_ORIGIN, body: "" }));
    await seen.page.reload();
    await seen.page.getByRole("alert").filter({ hasText: "The video cannot be loaded right now." }).waitFor();
    const published = publish(timeline, short());
    await seen.page.unroute("**/master.m3u8");
    await untilPlayed(seen.page, 1);
    await published;
  });

  nightly("is accessible while it waits and while it is live", async () => {
    const timeline = newTimeline();
    const { url } = await serveStream(timeline, short());
    const seen = await visit(browser, await customersPage(element("muted")));
    await stage(seen.page, url);
    await seen.page.reload();
    await notice(seen.page, "The stream has not started yet.");
    expect(await axeFaults(seen.page)).toEqual([]);
    const published = publish(timeline, short());
    goLive();
    await untilPlayed(seen.page, 1);
    await showControls(seen.page);
    expect(await axeFaults(seen.page)).toEqual([]);
    await published;
  });

  test("asks every two seconds while it waits, less often while the server fails, and not in a hidden tab", async () => {
    const context = await browser.newContext();
    atEnd(() => context.close());
    const page = await context.newPage();
    await page.clock.install({ time: 0 });
    // Otherwise it also runs by itself, as long as the machine takes.
    await page.clock.pauseAt(1000);
    const { states } = await stage(page);
    await page.goto(await customersPage(element()));
    await notice(page, "The stream has not started yet.");
    expect(states.length).toBe(1);
    /** Lets the page's clock run; with the answers to its requests, which take real time. */
    const pass = async (ms: number, requests: number) => {
      const before = states.length;
      await page.clock.runFor(ms);
      await expect.poll(() => states.length - before, { message: `requests within ${ms} ms` }).toBe(requests);
      await page.evaluate("fetch(location.href)");
    };
    await pass(1500, 0);
    await pass(1000, 1);
    state.status = "unavailable";
    await pass(2500, 1);
    await page.getByRole("alert").filter({ hasText: "The video cannot be loaded right now." }).waitFor();
    await pass(3000, 0);
    await pass(2000, 1);
    await pass(6000, 0);
    await pass(4000, 1);
    state.status = "idle";
    await pass(20_000, 1);
    await notice(page, "The stream has not started yet.");
    const hide = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} });
        document.dispatchEvent(new Event("visibilitychange"))`);
    await hide(true);
    await pass(60_000, 0);
    const before = states.length;
    await hide(false);
    await expect.poll(() => states.length - before).toBe(1);
  });
});
