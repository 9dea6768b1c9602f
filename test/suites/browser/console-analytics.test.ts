import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, type Visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady, uploadClip } from "#test/support/browser/platform.ts";
import { nightly } from "#test/support/nightly.ts";
import { axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signedIn } from "./console.ts";

const PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1";
const DESKTOP = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36";
/** A spreadsheet would execute it. */
const TITLE = '=HYPERLINK("https://evil.example","Ocean")';

let platform: Platform;
let browser: Browser;
let asset: number;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  asset = await uploadClip(platform, { title: TITLE, playback_policy: "public" });
  await untilReady(platform, asset);
  await views();
});
afterAll(async () => {
  await platform?.close();
});

/** Eight views of today and the two days before, of which every fourth one is from a phone and breaks off. */
async function views(): Promise<void> {
  for (let view = 0; view < 8; view++) {
    const isPhone = view % 4 === 0;
    const start = Date.now() - (view + 1) * 20 * 60_000;
    const event = (name: string, seconds: number, more: object = {}) => ({
      asset_id: asset,
      session_id: `session-${view}`,
      viewer_id: `viewer-${view % 5}`,
      referrer: isPhone ? "https://news.example/today?id=1" : undefined,
      event: name,
      position_seconds: seconds,
      occurred_at: new Date(start + seconds * 1000).toISOString(),
      ...more,
    });
    const rest = isPhone
      ? [event("error", 3, { watched_seconds: 2 })]
      : [
          event("rebufferstart", 4, { watched_seconds: 4 }),
          event("rebufferend", 4.5),
          event("ended", 8, { watched_seconds: 4 }),
        ];
    const sent = await platform.as({ headers: { "user-agent": isPhone ? PHONE : DESKTOP } }).recordPlaybackEvents({
      events: [event("play", 0), event("playing", 0.3, { startup_ms: 300 + view * 50 }), ...rest],
    });
    expect(sent.status).toBe(202);
  }
}

const open = (token = platform.key, options?: Parameters<typeof signedIn>[3]): Promise<Visit> =>
  signedIn(browser, platform.base, token, { timezoneId: "UTC", ...options });
const tile = ({ page }: Visit, name: string) => page.locator(".tile", { hasText: name }).locator("strong");
const ofApi = async (path: string, query: object) =>
  (await platform.call("GET", `/api/v1/${path}?${new URLSearchParams({ ...query })}`, { key: platform.key })).body;

test("the page shows what the API returns, by metric, device and video", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "Analytics").click();
  await heading(page, "Analytics").waitFor();
  await tile(seen, "Plays").getByText("8", { exact: true }).waitFor();
  const all = await ofApi("analytics", { details: "true", interval: "day" });
  expect(all).toMatchObject({ play_count: 8, unique_viewers: 5, watch_time_seconds: 52, error_count: 2 });
  expect(await tile(seen, "Viewers").textContent()).toBe("5");
  expect(await tile(seen, "Watch time").textContent()).toBe("0:52");
  expect(await tile(seen, "Completion").textContent()).toBe("75%");
  expect(await tile(seen, "Startup time").textContent()).toBe(`${Math.round(all.startup.p50_ms / 10) / 100} s`);
  expect(await tile(seen, "Rebuffering").textContent()).toBe(`${Math.round(all.rebuffering.ratio * 1000) / 10}%`);
  expect(await tile(seen, "Errors").textContent()).toBe("2");
  await page.getByRole("row", { name: /^Desktop 75% 6 0:48 100%/ }).waitFor();
  await page.getByRole("row", { name: /^Phone 25% 2 0:04 0%/ }).waitFor();
  await page.getByRole("row", { name: /^news\.example 25% 2 0:04/ }).waitFor();
  expect(await link(page, TITLE).getAttribute("href")).toBe(`/console/assets/${asset}`);

  // The table behind the chart has each bucket of the API.
  const chart = page.getByRole("slider", { name: "Plays" });
  await chart.locator("canvas").waitFor();
  await page.locator("summary", { hasText: "Table" }).click();
  const rows = page.locator(".behind tbody tr");
  expect(await rows.count()).toBe(7);
  const plays = await rows.locator("td:nth-child(2)").allTextContents();
  const days = all.timeseries.slice(-7).map(({ play_count }: { play_count: number }) => String(play_count));
  expect(plays).toEqual(days);
  expect(await axeFaults(page)).toEqual([]);

  // By keyboard.
  await chart.focus();
  await page.keyboard.press("End");
  const today = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" }).format(new Date());
  await page
    .locator(".chart-value")
    .getByText(`${today}: ${days.at(-1)}`, { exact: true })
    .waitFor();
  expect(await chart.getAttribute("aria-valuetext")).toBe(`${today}: ${days.at(-1)}`);
  await page.keyboard.press("ArrowLeft");
  expect(await chart.getAttribute("aria-valuetext")).not.toContain(today);
  // And by the pointer.
  await page.locator(".tile", { hasText: "Errors" }).click();
  await page.getByRole("slider", { name: "Errors" }).hover();
  await page.locator(".chart-value").getByText(/: \d/).waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("period, interval and video are in the page's address, also of a reloaded page", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "Analytics").click();
  await page.getByLabel("Period").selectOption("24h");
  await tile(seen, "Plays").waitFor();
  await page.locator("summary", { hasText: "Table" }).click();
  await expect.poll(() => page.locator(".behind tbody tr").count()).toBe(24);
  await page.getByLabel("Search").fill("Ocean");
  await page.getByRole("list", { name: "Videos found" }).getByRole("button", { name: TITLE }).click();
  await heading(page, "Audience retention").waitFor();
  expect(page.url()).toContain(`period=24h&asset=${asset}`);
  await page.reload();
  await heading(page, "Audience retention").waitFor();
  expect(await page.getByLabel("Period").inputValue()).toBe("24h");
  await page.getByLabel("Period").selectOption("custom");
  await page.getByLabel("From").fill("2020-01-01");
  await page.getByLabel("To").fill("2020-01-03");
  await page.getByText("No video was played in this period.").first().waitFor();
  expect(page.url()).toContain("from=2020-01-01&to=2020-01-03");
  await page.goto(`${platform.base}/console/analytics?asset=987654&period=nonsense&from=x`);
  await page.getByRole("alert").getByText(/asset/i).first().waitFor();
  expect(faultsOf(seen).filter((fault) => !/status of 404/.test(fault))).toEqual([]);
});

test("figures are compared with the period before, and explained", async () => {
  const seen = await open();
  const { page } = seen;
  // Tomorrow the views of today are those of the day before.
  await page.clock.setFixedTime(Date.now() + 24 * 3_600_000);
  await page.goto(`${platform.base}/console/analytics?period=24h`);
  await tile(seen, "Plays").getByText("0", { exact: true }).waitFor();
  const text = async (name: string) => page.locator(".tile", { hasText: name }).textContent();
  expect(await text("Plays")).toContain("Against the period before: -100%");
  expect(await page.locator(".tile", { hasText: "Plays" }).locator(".worse").count()).toBe(1);
  expect(await page.locator(".tile", { hasText: "Errors" }).locator(".better").count()).toBe(1);
  await page.getByText("How often a video was started.", { exact: false }).waitFor();
  await page.locator(".tile", { hasText: "Completion" }).click();
  await page.getByText("The share of plays that reached the end.").waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("the retention curve is over the storyboard, with a marker at the pointer", async () => {
  const seen = await open();
  const { page } = seen;
  await page.goto(`${platform.base}/console/analytics?asset=${asset}`);
  const frames = page.locator(".frames svg");
  await frames.first().waitFor();
  expect(await frames.count()).toBe(12);
  expect(await frames.first().evaluate((svg: any) => svg.querySelector("image").getBBox().width)).toBeGreaterThan(100);
  const strip = await page.locator(".frames").boundingBox();
  const plot = await page.getByRole("slider", { name: "Audience retention" }).locator(".u-over").boundingBox();
  expect(Math.abs((strip?.x ?? 0) - (plot?.x ?? -9))).toBeLessThan(2);
  expect(Math.abs((strip?.width ?? 0) - (plot?.width ?? -9))).toBeLessThan(2);
  await page.locator(".frames").hover({ position: { x: (strip?.width ?? 0) / 4, y: 5 } });
  const { retention } = await ofApi(`assets/${asset}/analytics`, { retention: "true" });
  const share = Math.round((retention[25].viewers / retention[0].viewers) * 1000) / 10;
  await page.getByText(`0:02: ${share}%`, { exact: true }).waitFor();
  const marker = await page.locator(".chart-marker").boundingBox();
  expect(Math.abs((marker?.x ?? 0) - ((strip?.x ?? 0) + (strip?.width ?? 0) / 4))).toBeLessThan(3);
  expect(await axeFaults(page)).toEqual([]);
  expect(faultsOf(seen)).toEqual([]);
});

test("what is shown is exported as CSV, and formulas are text", async () => {
  const seen = await open();
  const { page } = seen;
  await page.goto(`${platform.base}/console/analytics?period=7d`);
  const save = async (name: string) => {
    const [file] = await Promise.all([page.waitForEvent("download"), button(page, name).click()]);
    return readFileSync(await file.path(), "utf8").split("\r\n");
  };
  const [header, ...rows] = await save("Export CSV");
  expect(header).toBe(
    "start,play_count,unique_viewers,watch_time_seconds,completion_rate,startup_p50_ms,rebuffer_ratio,error_count",
  );
  const { timeseries } = await ofApi("analytics", { details: "true", interval: "day" });
  const last = timeseries.at(-1);
  expect(rows.at(-2)?.split(",")).toEqual([
    ...[last.start, last.play_count, last.unique_viewers, last.watch_time_seconds, last.completion_rate].map(String),
    ...[last.startup_p50_ms ?? "", last.rebuffer_ratio, last.error_count].map(String),
  ]);
  const [, video] = await save("Export videos as CSV");
  expect(video).toContain(`"'=HYPERLINK(""https://evil.example"",""Ocean"")",8,52`);
  expect(faultsOf(seen)).toEqual([]);
});

nightly("days and hours are those of the viewer's zone", async () => {
  const zone = { timezoneId: "Asia/Tokyo", locale: "en" };
  const seen = await open(platform.key, zone);
  const { page } = seen;
  await page.goto(`${platform.base}/console/analytics?period=7d`);
  await page.getByText("Days are those of UTC+9.").waitFor();
  await page.locator("summary", { hasText: "Table" }).click();
  const day = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "Asia/Tokyo" });
  const from = new Date(`${new Intl.DateTimeFormat("sv", { timeZone: "Asia/Tokyo" }).format(Date.now())}T00:00+09:00`);
  const today = await ofApi("analytics", { from: from.toISOString() });
  const last = page.locator(".behind tbody tr").last();
  expect(await last.locator("td").first().textContent()).toBe(day.format(Date.now()));
  expect(await last.locator("td").nth(1).textContent()).toBe(String(today.play_count));
  await page.getByLabel("By", { exact: true }).selectOption("hour");
  await expect.poll(() => page.locator(".behind tbody tr").count()).toBeGreaterThan(150);
  const hour = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short", timeZone: "Asia/Tokyo" });
  const start = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  expect(await last.locator("td").first().textContent()).toBe(hour.format(start));
  expect(faultsOf(seen)).toEqual([]);
});

nightly("the operator chooses a tenant, and a phone and the dark theme show the same", async () => {
  const seen = await open(platform.admin, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
  const { page } = seen;
  await button(page, "Menu").click();
  await link(page, "Analytics").click();
  await tile(seen, "Plays").getByText("8", { exact: true }).waitFor();
  expect(await page.getByLabel("Tenant").inputValue()).not.toBe("");
  const overflow = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = (globalThis as any).document.documentElement;
    return scrollWidth - clientWidth;
  });
  expect(overflow).toBe(0);
  expect(await axeFaults(page)).toEqual([]);
  expect(faultsOf(seen)).toEqual([]);
});

test("who watches now is shown, and what is stored of a viewer is erased", async () => {
  const event = { asset_id: asset, session_id: "now", viewer_id: "ann", event: "heartbeat" };
  await platform.as().recordPlaybackEvents(event);
  const seen = await open();
  const { page } = seen;
  await link(page, "Analytics").click();
  await button(page, "Right now").click();
  await page.getByRole("row", { name: `${TITLE} 1 1` }).waitFor();
  expect(await tile(seen, "Viewers now").textContent()).toBe("1");
  expect(await axeFaults(page)).toEqual([]);
  await page.goBack();
  await button(page, "Data of a viewer").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Viewer ID").fill("ann");
  const saved = page.waitForEvent("download");
  await button(page, "Continue").click();
  const { sessions } = JSON.parse(readFileSync(await (await saved).path(), "utf8"));
  expect(sessions).toMatchObject([{ asset_id: asset, events: [{ event: "heartbeat" }] }]);
  await button(page, "Data of a viewer").click();
  await dialog.getByLabel("Viewer ID").fill("ann");
  await dialog.getByLabel("Action").selectOption("erase");
  await button(page, "Continue").click();
  await button(page, "Confirm").click();
  await page.getByText("Erased sessions: 1").waitFor();
  expect((await ofApi("analytics/viewers/ann", {})).code).toBe("not_found");
  expect(faultsOf(seen)).toEqual([]);
});
