import { describe, expect, test } from "vitest";
import { RtcpPacketConverter } from "werift";
import { keyframeRequest, nack, readRtcp, receiverReport } from "#live/whip/rtcp.ts";
import { readRtp } from "#live/whip/rtp.ts";
import { bindingResponse, isAuthentic, readBindingRequest } from "#live/whip/stun.ts";
import { TransportArrivals } from "#live/whip/transport-arrivals.ts";
import { checkOf } from "#test/support/live/whip-client.ts";

describe("connectivity checks", () => {
  test("are read, and answered to those who know the password", () => {
    const request = readBindingRequest(checkOf("ours:theirs", "secret")());
    expect(request).toMatchObject({ ufrag: "ours", peerUfrag: "theirs", isNominated: true });
    if (!request) return;
    expect(isAuthentic(request, "secret")).toBe(true);
    expect(isAuthentic(request, "other")).toBe(false);
    for (const address of ["192.0.2.1", "2001:db8::1"]) {
      const response = bindingResponse(request, { address, port: 4000, password: "secret" });
      expect(response.readUInt16BE(0)).toBe(0x0101);
      expect(response.length).toBe(20 + response.readUInt16BE(2));
      // XOR-MAPPED-ADDRESS.
      expect(response.readUInt16BE(26) ^ 0x2112).toBe(4000);
    }
  });

  test("that are truncated or changed are not read as authentic, and never fail", () => {
    const check = checkOf("ours:theirs", "secret")();
    for (let at = 0; at < check.length; at++) {
      expect(readBindingRequest(check.subarray(0, at))).toBeNull();
      const changed = Buffer.from(check);
      changed[at] = (changed[at] as number) ^ 0xff;
      const request = readBindingRequest(changed);
      if (request) expect(isAuthentic(request, "secret")).toBe(false);
    }
  });
});

test("RTP of any bytes is read or dropped", () => {
  const packet = Buffer.from("90e000010000000200000003bede000110aabb00112233", "hex");
  expect(readRtp(packet)).toMatchObject({ payloadType: 96, marker: true, sequence: 1, timestamp: 2, source: 3 });
  for (let length = 0; length < packet.length; length++) readRtp(packet.subarray(0, length));
  for (let byte = 0; byte < 256; byte++) {
    const changed = Buffer.from(packet);
    changed[byte % packet.length] = byte;
    readRtp(changed);
    readRtcp(changed);
  }
});

describe("feedback", () => {
  test("is what the library reads", () => {
    const block = { source: 2, fractionLost: 3, lost: 4, highestSequence: 5, jitter: 6, lastReport: 7, delay: 8 };
    const [report] = RtcpPacketConverter.deSerialize(receiverReport(1, [block])) as unknown as [{ reports: unknown[] }];
    const read = { ssrc: 2, fractionLost: 3, packetsLost: 4, highestSequence: 5, jitter: 6 };
    expect(report.reports[0]).toMatchObject(read);
    const [lost] = RtcpPacketConverter.deSerialize(nack(1, 2, [10, 11, 14, 40])) as unknown as [
      { feedback: { lost: number[] } },
    ];
    expect(lost.feedback.lost).toEqual([10, 11, 14, 40]);
    // Across the wrap: 65535, and the first and fourth after it.
    expect(nack(1, 2, [65_535, 0, 3]).toString("hex", 12)).toBe("ffff0009");
    const [keyframe] = RtcpPacketConverter.deSerialize(keyframeRequest(1, 2)) as unknown as [
      { feedback: { mediaSsrc: number } },
    ];
    expect(keyframe.feedback.mediaSsrc).toBe(2);
  });

  test("says which packets arrived, and when", () => {
    const arrivals = new TransportArrivals(1);
    const received = [
      [65_534, 1000],
      [65_535, 1010],
      [1, 1200],
      [2, 1201.5],
    ] as const;
    for (const [sequence, ms] of received) arrivals.add(sequence, ms);
    const [message] = arrivals.take(2) as [Buffer];
    // From 65534 on 5 packets; the reference is 960 ms; then 40, 10, 190 and 1.5 ms, in 250 µs.
    expect(message.toString("hex")).toBe("8fcd00060000000100000002fffe000500000f00d490a02802f806000000".slice(0, 56));
    expect(arrivals.take(2)).toEqual([]);
  });
});

test("sender reports are read with their time", () => {
  const report = Buffer.alloc(28);
  report.writeUInt32BE(0x80c80006, 0);
  report.writeUInt32BE(9, 4);
  report.writeUInt32BE(2_208_988_800 + 1_700_000_000, 8);
  report.writeUInt32BE(2 ** 31, 12);
  report.writeUInt32BE(77, 16);
  expect(readRtcp(report).reports).toEqual([
    { source: 9, ntpMs: 1_700_000_000_500, timestamp: 77, ntpMiddle: expect.any(Number) },
  ]);
});
