import { expect, test } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { until } from "#test/support/descendants.ts";
import type { Endpoint } from "#test/support/live/whip-client.ts";
import { complaints, ffprobe } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { hlsOf, recordingsOf, shown, untilStatus, whipChannel, whipServer } from "./whip-server.ts";

const FAKE_DEVICES = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];

/** A script that publishes, and returns the status of the answer. */
const publishing = ({ base, channel, key }: Endpoint, encodings: object[] = []) => `(async () => {
  const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 360 }, audio: true });
  const peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  Object.assign(window, { peer });
  for (const track of stream.getTracks()) {
    const sendEncodings = track.kind === "video" ? ${JSON.stringify(encodings)} : [];
    const { sender } = peer.addTransceiver(track, { direction: "sendonly", streams: [stream], sendEncodings });
    if (track.kind === "video") Object.assign(window, { sender });
  }
  await peer.setLocalDescription(await peer.createOffer());
  const response = await fetch("${base}/live/${channel}/whip", {
    method: "POST",
    headers: { "content-type": "application/sdp", authorization: "Bearer ${key}" },
    body: peer.localDescription.sdp,
  });
  const sdp = await response.text();
  if (response.status === 201) await peer.setRemoteDescription({ type: "answer", sdp });
  return response.status;
})()`;

test("Chromium publishes its camera and microphone, and closing the connection ends the stream", async () => {
  const [server, browser] = await Promise.all([whipServer(), sharedBrowser(...FAKE_DEVICES)]);
  const channel = await whipChannel(server);
  const { page } = await visit(browser, `${server.base}/healthz`);
  expect(await page.evaluate(publishing(channel.endpoint))).toBe(201);
  const live = await untilStatus(server, channel, "live");
  expect(
    await complaints("-i", live.hls_url, "-t", "4", "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-"),
  ).not.toMatch(/corrupt|error while decoding/);
  expect((await shown(server, channel)).health.warnings).toEqual([]);
  await page.evaluate("peer.close()");
  // A connection that is lost would wait for 30 s, with the stream.
  await untilStatus(server, channel, "idle");
  expect(server.stderr() + server.stdout()).toMatch(/"end":"unpublished".*"a publish has ended"/);
  const [recording] = await recordingsOf(server, channel);
  const url = await hlsOf(server, channel, recording as NonNullable<typeof recording>);
  // The camera of a busy machine has frames at any times, so only what cannot be decoded counts.
  expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).not.toMatch(
    /corrupt|error while decoding/,
  );
});

/** Switches the larger of two layers on or off. */
const switching = (isOn: boolean) => `(async () => {
  const parameters = sender.getParameters();
  parameters.encodings[1].active = ${isOn};
  await sender.setParameters(parameters);
})()`;
const FRAMES_SENT = `(async () => Object.fromEntries(
  [...(await sender.getStats()).values()].flatMap(({ type, rid, framesSent }) => type === "outbound-rtp" ? [[rid, framesSent]] : []),
))()`;

nightly("Chromium switches off the larger layer of simulcast, and on again, in one stream", async () => {
  const [server, browser] = await Promise.all([whipServer(), sharedBrowser(...FAKE_DEVICES)]);
  const channel = await whipChannel(server);
  const { page } = await visit(browser, `${server.base}/healthz`);
  const layers = [{ rid: "low", scaleResolutionDownBy: 2 }, { rid: "high" }];
  expect(await page.evaluate(publishing(channel.endpoint, layers))).toBe(201);
  const { started_at } = await untilStatus(server, channel, "live");
  /** Both layers, or only the lower one, have sent so many further frames. */
  const sends = async (names: readonly ("low" | "high")[]) => {
    const before = (await page.evaluate(FRAMES_SENT)) as Record<string, number>;
    await until("frames are sent", async () => {
      const now = (await page.evaluate(FRAMES_SENT)) as Record<string, number>;
      return names.every((name) => (now[name] ?? 0) > (before[name] ?? 0) + 150);
    });
  };
  await sends(["low", "high"]);
  await page.evaluate(switching(false));
  await sends(["low"]);
  await page.evaluate(switching(true));
  await sends(["low", "high"]);
  expect((await shown(server, channel)).started_at).toBe(started_at);
  await page.evaluate("peer.close()");
  await untilStatus(server, channel, "idle");
  const assets = await recordingsOf(server, channel);
  expect(assets).toHaveLength(1);
  const url = await hlsOf(server, channel, assets[0] as NonNullable<(typeof assets)[0]>);
  const sizes = await ffprobe("-select_streams", "v:0", "-show_entries", "frame=width,height", "-of", "csv=p=0", url);
  const heights = [...sizes.matchAll(/\d+,(\d+)/g)].map(([, height]) => Number(height));
  const runs = heights.filter((height, index) => height !== heights[index - 1]);
  // A browser on a busy machine may make both layers smaller: what counts is which one plays.
  const [first = 0, second = 0, third = 0] = runs.slice(-3);
  expect([first > second, third > second, runs]).toEqual([true, true, runs]);
});
