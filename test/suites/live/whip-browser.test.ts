import { expect, test } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import type { Endpoint } from "#test/support/live/whip-client.ts";
import { complaints } from "#test/support/media/sources.ts";
import { hlsOf, recordingsOf, shown, untilStatus, whipChannel, whipServer } from "./whip-server.ts";

const FAKE_DEVICES = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];

/** A script that publishes, and returns the status of the answer. */
const publishing = ({ base, channel, key }: Endpoint) => `(async () => {
  const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 360 }, audio: true });
  const peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  Object.assign(window, { peer });
  for (const track of stream.getTracks()) peer.addTransceiver(track, { direction: "sendonly", streams: [stream] });
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
