import { expect, test } from "vitest";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { x264 } from "#test/support/live/cmaf-publisher.ts";
import { liveServer, newChannel, publish } from "#test/support/live.ts";
import { axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signedIn } from "./console.ts";

test("a channel shows that it is live, what the encoder sends, and what to change", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const browser = await sharedBrowser();
  const seen = await signedIn(browser, server.base, server.admin);
  const { page } = seen;
  await link(page, "Live").click();
  const row = page.getByRole("row", { name: /live\/stage/ });
  await row.getByText("Active", { exact: true }).waitFor();
  const publishing = publish(server, channel, 60, { video: x264(150, 0) });
  await row.getByText("Live · 0 watching").waitFor();
  await row.getByText(/ Mbit\/s, .* fps, keyframes every 5 s/).waitFor();
  await row.getByText("Set the keyframe interval of the encoder to 2 s", { exact: false }).waitFor();
  expect(await link(page, "Watch").getAttribute("href")).toBe("/watch/live/stage");

  const body = { live_channel: "stage", session_id: "one", event: "play" };
  expect((await server.as().recordPlaybackEvents(body)).body).toEqual({ accepted: 1 });
  await link(page, "Analytics").click();
  await heading(page, "Top live channels").waitFor();
  expect(await page.getByRole("row", { name: /^stage 1/ }).count()).toBe(1);
  await link(page, "stage").click();
  await heading(page, "Viewers in the last hour").waitFor();
  await page.getByText(/ Mbit\/s, .* fps/).waitFor();
  // The current minute is the last one, and the publisher has no other.
  const chart = page.getByRole("slider", { name: "Bitrate in the last hour" });
  await expect
    .poll(async () => {
      await chart.press("End");
      return chart.getAttribute("aria-valuetext");
    })
    .toMatch(/ Mbit\/s$/);
  const viewers = page.getByRole("slider", { name: "Viewers in the last hour" });
  await viewers.press("End");
  expect(await viewers.getAttribute("aria-valuetext")).toMatch(/: 0$/);
  await viewers.press("Home");
  expect(await viewers.getAttribute("aria-valuetext")).toMatch(/: –$/);
  expect(await axeFaults(page)).toEqual([]);

  await button(page, "New target").click();
  // Not in the ranges that are allowed.
  await page.getByLabel("URL").fill("rtmp://127.0.0.1/app");
  await page.getByLabel("Stream key", { exact: true }).fill("secret-key");
  await button(page, "Create").click();
  await page.getByText("is not a public IP address", { exact: false }).waitFor();
  await page.getByLabel("URL").fill("rtmp://localhost/app");
  await page.getByRole("dialog").getByLabel("Name").fill("Other");
  await button(page, "Create").click();
  const target = page.getByRole("row", { name: /^Other rtmp:\/\/localhost\/app/ });
  await target.getByText("Failed", { exact: true }).waitFor();
  await target.getByText("localhost does not resolve to a public IP address; use a public host.").waitFor();
  expect(await page.content()).not.toContain("secret-key");
  expect(await axeFaults(page)).toEqual([]);
  await target.getByRole("button", { name: "Disable" }).click();
  await target.getByText("Disabled", { exact: true }).waitFor();
  await target.getByRole("button", { name: "Delete" }).click();
  await button(page, "Confirm").click();
  await page.getByText("No targets.", { exact: false }).waitFor();
  await link(page, "Live").click();
  publishing.child.kill("SIGINT");
  await row.getByText("Active", { exact: true }).waitFor();
  // The target that was refused.
  expect(faultsOf(seen)).toEqual([expect.stringContaining("422")]);
});
