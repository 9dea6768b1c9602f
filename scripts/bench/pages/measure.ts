import type { BrowserContextOptions, CDPSession, Page } from "playwright-core";
import type { Load } from "./score.ts";

/** What Lighthouse applies to phones: a slow 4G line, and a processor four times slower. */
const LINE = {
  offline: false,
  latency: 562.5,
  downloadThroughput: (1474.56 * 1024) / 8,
  uploadThroughput: (675 * 1024) / 8,
};
const SLOWER = 4;
export const PHONE: BrowserContextOptions = {
  viewport: { width: 412, height: 823 },
  deviceScaleFactor: 1.75,
  isMobile: true,
  hasTouch: true,
};
/** After the last request, for what a page does then. */
const QUIET_MS = 2000;
/** A longer task blocks what a person does (W3C Long Tasks). */
const TASK_MS = 50;

/** Runs in the page, before its own scripts. */
const OBSERVE = `
  globalThis.observed = { tasks: [], largest: 0, shift: 0 };
  const each = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
  each("longtask", ({ startTime, duration }) => observed.tasks.push([startTime, duration]));
  each("largest-contentful-paint", ({ startTime }) => { observed.largest = startTime; });
  each("layout-shift", ({ value, hadRecentInput }) => { if (!hadRecentInput) observed.shift += value; });
`;

/** Loads a page with an empty cache on a slow phone, until it rests. */
export async function measure(page: Page, url: string): Promise<Load> {
  const session: CDPSession = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", LINE);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  await page.addInitScript(OBSERVE);
  await page.goto(url, { waitUntil: "load", timeout: 60_000 });
  await page.waitForTimeout(QUIET_MS);
  const load = (await page.evaluate(`(() => {
    const firstPaint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
    const blocked = observed.tasks
      .filter(([start]) => start >= firstPaint)
      .reduce((sum, [, duration]) => sum + Math.max(0, duration - ${TASK_MS}), 0);
    return { firstPaint, largestPaint: observed.largest, blocked, shift: observed.shift };
  })()`)) as Load;
  await session.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  await session.detach();
  return load;
}
