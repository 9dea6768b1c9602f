import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { checkOf, offerOf, overHttp, ownIdentity, sendOffer, WhipClient } from "#test/support/live/whip-client.ts";
import { audioOf, signalAudio, signalVideo, videoOf } from "#test/support/live/whip-media.ts";
import { recordingsOf, shown, untilStatus, whipChannel, whipServer } from "./whip-server.ts";

const FINGERPRINT = Array.from({ length: 32 }, () => "AB").join(":");

test("an offer is answered, or refused with the status that says why", async () => {
  const server = await whipServer();
  const { endpoint } = await whipChannel(server);
  const statusOf = async (body: string, other: Partial<typeof endpoint> = {}) => {
    const response = await sendOffer({ ...endpoint, ...other }, body);
    return [response.status, (await response.text()).slice(0, 500)] as const;
  };
  const offer = offerOf(FINGERPRINT);
  expect((await statusOf(offer, { key: "live_wrong" }))[0]).toBe(401);
  expect((await statusOf(offer, { channel: "unknown" }))[0]).toBe(401);
  expect((await statusOf("no sdp"))[0]).toBe(400);
  expect((await statusOf(""))[0]).toBe(400);
  expect((await statusOf(offer.replaceAll(/a=ice-pwd.*\r\n/g, "")))[0]).toBe(400);
  const [vp8, why] = await statusOf(offerOf(FINGERPRINT, { videoCodec: "VP8/90000" }));
  expect(vp8).toBe(406);
  expect(why).toContain("H.264");
  const [pcm, whyNot] = await statusOf(offerOf(FINGERPRINT, { audioCodec: "PCMU/8000" }));
  expect(pcm).toBe(406);
  expect(whyNot).toContain("Opus");
  const url = `${server.base}/live/stage/whip`;
  const authorization = `Bearer ${endpoint.key}`;
  const send = (init: RequestInit) => fetch(url, init);
  expect((await send({ method: "POST", body: offer, headers: { "content-type": "application/sdp" } })).status).toBe(
    401,
  );
  const json = { authorization, "content-type": "application/json" };
  expect((await send({ method: "POST", body: offer, headers: json })).status).toBe(415);
  const get = await send({ headers: { authorization } });
  expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"]);
  const preflight = await send({
    method: "OPTIONS",
    headers: {
      origin: "https://example.com",
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization, content-type",
    },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-headers")).toContain("authorization");
  expect(preflight.headers.get("access-control-expose-headers")).toContain("Location");
  const accepted = await sendOffer(endpoint, offer);
  expect(accepted.status).toBe(201);
  expect(accepted.headers.get("content-type")).toBe("application/sdp");
  const location = accepted.headers.get("location") as string;
  expect(location).toMatch(new RegExp(`^${server.base}/live/stage/whip/\\w{32}$`));
  const answer = await accepted.text();
  expect(answer).toMatch(/a=ice-lite\r\n/);
  expect(answer).toMatch(/a=setup:passive\r\n/);
  expect(answer).toMatch(/a=candidate:\d+ 1 udp \d+ 127\.0\.0\.1 \d+ typ host\r\n/);
  expect(answer).toMatch(/a=candidate:\d+ 1 tcp \d+ 127\.0\.0\.1 \d+ typ host tcptype passive\r\n/);
  // The channel is taken.
  expect((await statusOf(offer))[0]).toBe(409);
  const patch = (body: string) =>
    fetch(location, {
      method: "PATCH",
      body,
      headers: { authorization, "content-type": "application/trickle-ice-sdpfrag" },
    });
  expect(
    (
      await patch(
        "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\nm=audio 9 RTP/AVP 0\r\na=end-of-candidates\r\n",
      )
    ).status,
  ).toBe(204);
  expect((await patch("a=ice-ufrag:other\r\na=ice-pwd:abcdefghijklmnopqrstuvwy\r\n")).status).toBe(422);
  const wrong = { authorization: "Bearer live_wrong" };
  expect((await fetch(location, { method: "DELETE", headers: wrong })).status).toBe(401);
  expect((await fetch(`${location}x`, { method: "DELETE", headers: { authorization } })).status).toBe(404);
  expect((await fetch(location, { method: "DELETE", headers: { authorization } })).status).toBe(200);
  expect((await fetch(location, { method: "DELETE", headers: { authorization } })).status).toBe(404);
  // Audio or video alone, and the channel is free again.
  for (const kind of [{ video: false }, { audio: false }]) {
    const alone = await sendOffer(endpoint, offerOf(FINGERPRINT, kind));
    expect(alone.status).toBe(201);
    expect((await fetch(alone.headers.get("location") as string, { method: "DELETE" })).status).toBe(200);
  }
});

test("a server without WHIP has no such address, and none in its channels", async () => {
  const server = await whipServer({ VODBOX_WHIP_PORT: "", VODBOX_RTMP_PORT: "0" });
  const channel = await whipChannel(server);
  expect((await shown(server, channel)).ingest.whip_url).toBeNull();
  expect((await sendOffer(channel.endpoint, offerOf(FINGERPRINT))).status).toBe(404);
});

test("offers without a connection take no place of a publisher, who has one once it is connected", async () => {
  const server = await whipServer({ VODBOX_RTMP_CONNECTIONS_PER_ADDRESS: "2" });
  const first = await whipChannel(server);
  const endpointOf = async (channel: string) => {
    const { body } = await server.as(first.key).createChannel({ channel, playback_policy: "public" });
    return { base: server.base, channel, key: body.stream_key };
  };
  const { fingerprint } = await ownIdentity();
  for (const name of ["silent-1", "silent-2", "silent-3"])
    expect((await sendOffer(await endpointOf(name), offerOf(fingerprint))).status).toBe(201);
  const publisher = await WhipClient.connect(first.endpoint);
  // Two more offers are answered before either of them connects, and there is one more place.
  const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const connected = await Promise.all(
    ["next-1", "next-2"].map(async (name, index) => {
      const exchange = overHttp(await endpointOf(name));
      return WhipClient.connect(async (offer) => {
        const answered = await exchange(offer);
        answers[index]?.resolve();
        await Promise.all(answers.map(({ promise }) => promise));
        return answered;
      });
    }),
  );
  await Promise.race(connected.map(({ closed }) => closed));
  const { status } = await sendOffer(await endpointOf("last"), offerOf(fingerprint));
  expect(status).toBe(503);
  expect((await fetch(publisher.location, { method: "DELETE" })).status).toBe(200);
});

test("a publisher that loses its connection comes back into the same stream, and a second one is refused or takes over", async () => {
  const [server, video, audio] = await Promise.all([whipServer(), videoOf(signalVideo(40)), audioOf(signalAudio(40))]);
  const channel = await whipChannel(server);
  const first = await WhipClient.connect(channel.endpoint);
  void first.publish({ video, audio });
  const { started_at } = await untilStatus(server, channel, "live");
  await expect(WhipClient.connect(channel.endpoint)).rejects.toThrow(/^409/);
  first.abandon();
  // After 3 s of silence the same key may publish again.
  const second = await until("the publisher may come back", () =>
    WhipClient.connect(channel.endpoint).catch(() => null),
  );
  void second.publish({ video, audio });
  const body = { takeover: true };
  expect((await server.as(channel.key).updateChannel(channel.id, body)).status).toBe(200);
  await until(
    "the second publisher is received",
    async () => ((await shown(server, channel)).health?.bitrate ?? 0) > 10_000,
  );
  const third = await WhipClient.connect(channel.endpoint);
  void third.publish({ video, audio });
  await second.closed;
  expect((await fetch(second.location, { method: "DELETE" })).status).toBe(404);
  await until("the third publisher is received", async () => (await shown(server, channel)).health !== null);
  expect((await shown(server, channel)).started_at).toBe(started_at);
  await fetch(third.location, { method: "DELETE" });
  expect(await recordingsOf(server, channel)).toHaveLength(1);
});

test("media over TCP are received, and a certificate that is not that of the offer is refused", async () => {
  const [server, video] = await Promise.all([whipServer(), videoOf(signalVideo(20))]);
  const channel = await whipChannel(server);
  const client = await WhipClient.connect(channel.endpoint, { audio: false, tcp: true, profiles: [1] });
  void client.publish({ video });
  await untilStatus(server, channel, "live");
  await fetch(client.location, { method: "DELETE" });
  await Promise.all([client.closed, client.ended]);
  const other = await WhipClient.connect(channel.endpoint, { audio: false, fingerprint: FINGERPRINT });
  expect(server.stderr() + server.stdout()).toMatch(/certificate of the peer is not that of its offer/);
  other.abandon();
});

test("packets of strangers are not answered, and change nothing", async () => {
  const server = await whipServer();
  const channel = await whipChannel(server);
  const answer = await (await sendOffer(channel.endpoint, offerOf((await ownIdentity()).fingerprint))).text();
  const [, address, port] = /candidate:\d+ 1 udp \d+ (\S+) (\d+)/.exec(answer) as unknown as [string, string, string];
  const ufrag = /a=ice-ufrag:(\S+)/.exec(answer)?.[1];
  const password = /a=ice-pwd:(\S+)/.exec(answer)?.[1] as string;
  const socket = createSocket("udp4");
  const received: Buffer[] = [];
  socket.on("message", (packet) => received.push(packet));
  const send = (packet: Buffer) => new Promise((resolve) => socket.send(packet, Number(port), address, resolve));
  const valid = checkOf(`${ufrag}:abcd`, password);
  for (let round = 0; round < 2000; round++) {
    const check = valid();
    // Truncated, with one byte changed, of another user or password; DTLS and RTP without a check.
    check[round % check.length] = (check[round % check.length] as number) ^ 0x55;
    await send(round % 3 === 0 ? check.subarray(0, round % check.length) : check);
    if (round % 10 === 0) await send(Buffer.from(Array.from({ length: 200 }, (_, at) => (at * round) & 0xff)));
    if (round % 10 === 1) await send(checkOf(`${ufrag}:abcd`, "wrong")());
    if (round % 10 === 2) await send(checkOf("nobody:abcd", password)());
    if (round % 10 === 3) await send(Buffer.concat([Buffer.of(22, 254, 253), Buffer.alloc(60)]));
  }
  const stranger = connect(Number(port), address);
  const closed = new Promise((resolve) => stranger.once("close", resolve));
  stranger.on("error", () => {}).write(Buffer.concat([Buffer.of(0, 20), Buffer.alloc(20, 7)]));
  await closed;
  expect(received).toEqual([]);
  // The server still answers a valid one.
  await until("a valid check is answered", async () => {
    await send(valid());
    return received.length > 0;
  });
  expect(received[0]?.readUInt16BE(0)).toBe(0x0101);
  socket.close();
});
