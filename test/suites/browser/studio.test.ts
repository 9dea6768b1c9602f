import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { until } from "#test/support/descendants.ts";
import { newFolder } from "#test/support/folder.ts";
import { type LiveServer, newChannel } from "#test/support/live.ts";
import { startServer } from "#test/support/process.ts";
import { axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signedIn } from "./console.ts";

const FAKE_DEVICES = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];

/** A server that receives WHIP, where `isOn`, with a channel, and the console in a browser with a camera. */
async function consoleOf(isOn: boolean) {
  const env: Record<string, string> = isOn ? { VODBOX_WHIP_PORT: "0" } : {};
  const [server, browser] = await Promise.all([
    startServer(newFolder(), { env, args: ["--workers", "0"] }),
    sharedBrowser(...FAKE_DEVICES),
  ]);
  const channel = await newChannel(server as LiveServer, { name: "Stage" });
  const seen = await signedIn(browser, server.base, server.admin);
  await link(seen.page, "Live").click();
  return { server, channel, seen, page: seen.page };
}

test("a person goes live from the browser, makes a clip, and finds the recording", async () => {
  const { server, channel, seen, page } = await consoleOf(true);
  const shown = async () => (await server.as(channel.key).getChannel(channel.id)).body;
  await link(page, "Stage").click();
  await page.getByText("Waiting for an encoder").waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await button(page, "Go live").click();
  await heading(page, "Go live: Stage").waitFor();
  await page
    .getByLabel("Camera", { exact: true })
    .getByRole("option", { name: /fake_device_0/ })
    .waitFor({ state: "attached" });
  await expect
    .poll(() =>
      page
        .getByLabel("Preview", { exact: true })
        .evaluate((video) => (video as unknown as { videoWidth: number }).videoWidth),
    )
    .toBeGreaterThan(0);
  await page.getByLabel("Title").fill("Evening show");
  await button(page, "Go live").click();
  await page.getByText("You are live").waitFor();
  const live = await until("the channel is live", async () => {
    const found = await shown();
    return found.status === "live" && found.health ? found : null;
  });
  expect(live.name).toBe("Evening show");
  await page.getByText(/ Mbit\/s, .* fps/).waitFor();
  expect(await axeFaults(page)).toEqual([]);
  // Another microphone is a change of what is sent, not of the stream.
  await page.getByLabel("Microphone").selectOption({ index: 1 });
  await page.getByText("You are live").waitFor();

  // Leaving ends the stream, so the browser asks. The dialogs of the page are dismissed by default: it stays.
  await link(page, "Channel").click();
  await heading(page, "Go live: Evening show").waitFor();
  const watching = await page.context().newPage();
  await watching.goto(`${server.base}/console/live/${channel.id}`);
  await button(watching, "Last 30 seconds").click();
  await watching.getByRole("link", { name: "The clip is ready: Evening show" }).waitFor();
  await watching.close();

  // Real time: the request that ends the stream takes so long, and the stream is there until it arrives.
  await page.route(/\/whip\//, (route) => sleep(500).then(() => route.continue()));
  const ending = page.waitForResponse(/\/whip\//);
  await button(page, "End stream").click();
  await page.getByText("Not sending").waitFor();
  expect((await ending).status()).toBe(200);
  await until("the channel is idle", async () => ((await shown()).status === "idle" ? true : null));
  expect((await shown()).started_at).toBe(null);
  await link(page, "Channel").click();
  await link(page, "Open").click();
  await page.getByRole("heading", { name: /^Evening show, \d{4}-\d\d-\d\d/ }).waitFor();
  const streams = (await server.as(channel.key).listLiveStreams(channel.id)).body;
  expect(streams).toEqual([
    { id: 1, started_at: live.started_at, ended_at: expect.any(String), asset_id: expect.any(Number) },
  ]);
  expect(faultsOf(seen)).toEqual([]);
});

test("without WHIP the studio says how to go live, and every setting of a channel is kept", async () => {
  const { server, channel, seen, page } = await consoleOf(false);
  await button(page, "Go live").click();
  await page.getByText("The operator switches it on with VODBOX_WHIP_PORT", { exact: false }).waitFor();
  await page.getByText("No protocol for encoders is switched on.", { exact: false }).waitFor();
  await link(page, "Channel").click();
  await heading(page, "Settings").click();
  await page.getByLabel("Name", { exact: true }).fill("Main stage");
  await page.getByLabel("Who may watch").selectOption("signed");
  await page.getByLabel("Record: each stream becomes a video").uncheck();
  await page.getByLabel("Viewers can seek back, in seconds").fill("600");
  await page.getByLabel("A new publisher replaces the old one").check();
  await page.getByLabel("User name of the publisher").fill("ann");
  await button(page, "Save").click();
  await heading(page, "Main stage").waitFor();
  expect((await server.as(channel.key).getChannel(channel.id)).body).toMatchObject({
    name: "Main stage",
    playback_policy: "signed",
    record: false,
    dvr_seconds: 600,
    takeover: true,
    publisher: "ann",
    low_latency: true,
    encoding_profile: null,
    captions: [],
  });
  await page.getByText("The link of a signed channel contains a token", { exact: false }).waitFor();

  // In two days and a little more.
  const startsAt = new Date(Date.now() + 2 * 86_400_000 + 600_000).toISOString();
  const changed = await server.as(channel.key).updateChannel(channel.id, { starts_at: startsAt });
  expect(changed.body.starts_at).toBe(startsAt);
  const { token } = (await server.as(channel.key).createChannelToken(channel.id, {})).body;
  const waiting = await page.context().newPage();
  await waiting.goto(`${server.base}/watch/live/${channel.channel}?token=${token}`);
  await waiting
    .getByRole("timer")
    .getByText(/2 · 00:\d\d:\d\d$/)
    .waitFor();
  expect(await axeFaults(waiting)).toEqual([]);
  for (const starts_at of ["tomorrow", 7, "2026-02-30"])
    expect((await server.as(channel.key).unchecked.updateChannel(channel.id, { starts_at })).status).toBe(422);
  await server.as(channel.key).updateChannel(channel.id, { starts_at: null });
  await waiting.getByRole("timer").waitFor({ state: "hidden" });
  await waiting.close();
  expect(faultsOf(seen)).toEqual([]);
});
