import { expect, test, vi } from "vitest";
import { sharedBrowser, untilPlayed, videoIn, visit } from "#test/support/browser/browser.ts";
import { liveServer, newChannel, publish } from "#test/support/live.ts";

test("a viewer who cannot receive what the publisher sends watches a rendition of the running stream", async () => {
  const server = await liveServer({ workers: 1 });
  const channel = await newChannel(server, { encoding_profile: "default" });
  publish(server, channel, 300, { size: "640x360" });
  const master = `${server.base}/live/stage/master.m3u8`;
  await vi.waitFor(async () => expect(await (await fetch(master)).text()).toContain("/240p/"), { timeout: 60_000 });
  const browser = await sharedBrowser();
  const { page } = await visit(browser, "about:blank");
  await page.route(/\/360p\/.*\.m4s$/, (route) => route.abort());
  await page.goto(`${server.base}/watch/live/stage`);
  await page.locator("svc-player").click();
  await untilPlayed(page, 8);
  expect((await videoIn(page))?.videoHeight).toBe(240);
});
