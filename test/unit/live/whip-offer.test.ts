import { describe, expect, test } from "vitest";
import { announcedAddresses } from "#live/whip/addresses.ts";
import { writeAnswer } from "#live/whip/answer.ts";
import { negotiate, OfferNotAcceptable } from "#live/whip/negotiation.ts";
import { OfferInvalid, readOffer } from "#live/whip/offer.ts";
import { offerOf } from "#test/support/live/whip-client.ts";

const FINGERPRINT = Array.from({ length: 32 }, () => "AB").join(":");
const offer = (...options: Parameters<typeof offerOf> extends [string, ...infer Rest] ? Rest : never) =>
  offerOf(FINGERPRINT, ...options);
const local = {
  sessionId: "7",
  ufrag: "ours",
  password: "secret",
  fingerprint: "AA:BB",
  candidates: [
    { address: "203.0.113.7", port: 8189, transport: "udp" as const },
    { address: "203.0.113.7", port: 8189, transport: "tcp" as const },
  ],
};
const answerTo = (sdp: string) => writeAnswer(negotiate(readOffer(sdp)), local).split("\r\n");

describe("an offer", () => {
  test("is read with its credentials, codecs and layers", () => {
    const { ufrag, password, bundle, media } = readOffer(offer({ rids: ["low", "high"] }));
    expect({ ufrag, password, bundle }).toEqual({
      ufrag: "abcd",
      password: "abcdefghijklmnopqrstuvwx",
      bundle: ["a", "v"],
    });
    expect(media.map(({ kind, mid, isSent, rids }) => [kind, mid, isSent, rids])).toEqual([
      ["audio", "a", true, []],
      ["video", "v", true, ["low", "high"]],
    ]);
    expect(media[1]?.codecs[0]?.parameters.get("packetization-mode")).toBe("1");
  });

  test.each([
    ["is empty", "", /v=0/],
    ["is another text", "hello", /v=0/],
    ["has a line that is none", "v=0\r\nhello\r\n", /Line 2/],
    ["has an incomplete media description", offer().replace(/m=audio.*/, "m=audio x"), /media description/],
    ["has no credentials", offer().replaceAll(/a=ice-ufrag.*\r\n/g, ""), /ICE/],
    ["has no fingerprint", offer().replaceAll(/a=fingerprint.*\r\n/g, ""), /fingerprint/],
    ["has too many lines", `v=0\r\n${"a=x\r\n".repeat(6000)}`, /more than 5000 lines/],
    ["has too many media", `v=0\r\n${"m=audio 9 RTP/AVP 0\r\n".repeat(20)}`, /more than 16 media/],
  ])("that %s is invalid", (_, text, why) => {
    expect(() => readOffer(text)).toThrow(OfferInvalid);
    expect(() => readOffer(text)).toThrow(why);
  });

  test.each([
    ["without H.264", offer({ videoCodec: "VP8/90000" }), /H\.264/],
    ["without Opus", offer({ audioCodec: "PCMU/8000" }), /Opus/],
    ["that sends nothing", offer().replaceAll("a=sendonly", "a=recvonly"), /neither audio nor video/],
    ["that waits for the handshake", offer().replaceAll("setup:actpass", "setup:passive"), /actpass/],
    ["without a BUNDLE group", offer().replace(/a=group.*\r\n/, ""), /BUNDLE/],
    ["with a port for RTCP", offer().replaceAll("a=rtcp-mux\r\n", ""), /rtcp-mux/],
    ["with interleaved packets", offer().replace("packetization-mode=1", "packetization-mode=2"), /H\.264/],
  ])("%s is not acceptable, with the reason", (_, text, why) => {
    expect(() => negotiate(readOffer(text))).toThrow(OfferNotAcceptable);
    expect(() => negotiate(readOffer(text))).toThrow(why);
  });

  test("of 64 kB is read in linear time, whatever it repeats", () => {
    const lines = [
      "a=fmtp:96 ",
      "a=rtpmap:96 H264/90000",
      "a=extmap:1 x",
      "a=rtcp-fb:96 x",
      "a=rid:x send",
      "a=fingerprint:x y",
    ];
    for (const line of lines) {
      const time = (bytes: number) => {
        const text = `v=0\r\nm=video 9 RTP/AVP 96\r\n${`${line};a=b\r\n`.repeat(Math.floor(bytes / (line.length + 6)))}`;
        const times = Array.from({ length: 10 }, () => {
          const from = performance.now();
          expect(() => readOffer(text)).toThrow(OfferInvalid);
          return performance.now() - from;
        });
        // The others were interrupted.
        return Math.min(...times);
      };
      time(16_000);
      expect(time(64_000)).toBeLessThan(12 * time(16_000) + 5);
    }
  });
});

describe("an answer", () => {
  test("takes the first of each kind, and declines the rest", () => {
    const more = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:d\r\n";
    const lines = answerTo(
      `${offer()}m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:w\r\na=sendonly\r\na=rtcp-mux\r\n${more}`,
    );
    expect(lines.filter((line) => /^m=/.test(line))).toEqual([
      "m=audio 9 UDP/TLS/RTP/SAVPF 111",
      "m=video 9 UDP/TLS/RTP/SAVPF 96",
      "m=video 0 UDP/TLS/RTP/SAVPF 96",
      "m=application 0 UDP/DTLS/SCTP webrtc-datachannel",
    ]);
    expect(lines).toContain("a=group:BUNDLE a v");
    expect(lines.filter((line) => line === "a=recvonly")).toHaveLength(2);
  });

  test("takes what is on the connection of other media, whose port is 0", () => {
    const bundled = offer().replace(/m=video 9([\s\S]*a=mid:v)/, "m=video 0$1\r\na=bundle-only");
    expect(bundled).toContain("m=video 0");
    expect(answerTo(bundled).filter((line) => /^m=/.test(line))).toEqual([
      "m=audio 9 UDP/TLS/RTP/SAVPF 111",
      "m=video 9 UDP/TLS/RTP/SAVPF 96",
    ]);
  });

  test("declines what was stopped, which has no attributes", () => {
    const lines = answerTo(`${offer()}m=video 0 UDP/TLS/RTP/SAVPF 96\r\na=mid:w\r\na=inactive\r\n`);
    expect(lines.at(-6)).toBe("m=video 0 UDP/TLS/RTP/SAVPF 96");
    // GStreamer needs it.
    expect(lines.at(-4)).toBe("a=fingerprint:sha-256 AA:BB");
  });

  test("has the profile of the offer at a level that does not limit it, and every layer", () => {
    const lines = answerTo(offer({ rids: ["q", "f"] }));
    expect(lines.find((line) => line.startsWith("a=fmtp:96"))).toMatch(/packetization-mode=1;profile-level-id=42e034/);
    expect(lines).toContain("a=simulcast:recv q;f");
    const symmetric = answerTo(offer().replace(";level-asymmetry-allowed=1", ""));
    expect(symmetric.find((line) => line.startsWith("a=fmtp:96"))).toMatch(/profile-level-id=42e01f/);
  });

  test("prefers UDP to TCP", () => {
    const candidates = answerTo(offer())
      .filter((line) => line.startsWith("a=candidate"))
      .slice(0, 2);
    const priorities = candidates.map((line) => Number(line.split(" ")[3]));
    expect(candidates[0]).toMatch(/ udp .* 203\.0\.113\.7 8189 typ host$/);
    expect(candidates[1]).toMatch(/ tcp .* 203\.0\.113\.7 8189 typ host tcptype passive$/);
    expect(priorities[0]).toBeGreaterThan(priorities[1] as number);
    expect(Math.max(...priorities)).toBeLessThan(2 ** 31);
  });
});

test("the addresses of an answer are those of the setting, of the socket, or of this machine", () => {
  const own = (address: string, internal: boolean, family: "IPv4" | "IPv6" = "IPv4") => ({
    address,
    internal,
    netmask: "",
    mac: "",
    cidr: null,
    ...(family === "IPv6" ? { family, scopeid: 0 } : { family }),
  });
  const interfaces = { lo: [own("127.0.0.1", true)], eth0: [own("192.0.2.1", false), own("fe80::1", false, "IPv6")] };
  expect(announcedAddresses("0.0.0.0", ["203.0.113.7"], interfaces)).toEqual(["203.0.113.7"]);
  expect(announcedAddresses("192.0.2.9", [], interfaces)).toEqual(["192.0.2.9"]);
  expect(announcedAddresses("0.0.0.0", [], interfaces)).toEqual(["192.0.2.1"]);
  expect(announcedAddresses("::", [], { lo: interfaces.lo })).toEqual(["127.0.0.1"]);
});
