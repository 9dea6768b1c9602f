import { expect, test } from "vitest";
import { ArrivalClock } from "#src/lib/srt/arrival-clock.ts";
import {
  type Acknowledgement,
  fullAcknowledgement,
  lightAcknowledgement,
  lossReport,
  nextSequence,
  type Range,
  sequenceDistance,
} from "#src/lib/srt/packets.ts";
import { ReceiveBuffer } from "#src/lib/srt/receive-buffer.ts";
import { RoundTrip } from "#src/lib/srt/round-trip.ts";
import { readStreamId } from "#src/lib/srt/stream-id.ts";
import { Random } from "#test/support/crash/random.ts";

const header = { timestamp: 0x01020304, destination: 0x0a0b0c0d };

test("a full acknowledgement has the fields of section 3.2.4", () => {
  const content: Acknowledgement = {
    next: 1000,
    rttUs: 100_000,
    rttVarianceUs: 50_000,
    availableBuffer: 8192,
    packetsPerSecond: 570,
    linkCapacity: 1000,
    bytesPerSecond: 750_000,
  };
  expect(fullAcknowledgement({ ...header, information: 7 }, content).toString("hex")).toBe(
    // Control type 2, its number, the timestamp and the destination.
    "8002000000000007010203040a0b0c0d" + "000003e8000186a00000c350000020000000023a000003e8000b71b0",
  );
});

test("a light acknowledgement has a sequence number only, and no number of its own", () => {
  expect(lightAcknowledgement(header, 0x7fffffff).toString("hex")).toBe("8002000000000000010203040a0b0c0d7fffffff");
});

test("a loss report codes single numbers and ranges as appendix A", () => {
  const ranges: Range[] = [
    [5, 5],
    [7, 9],
    [0x7ffffffe, 1],
  ];
  expect(lossReport(header, ranges).toString("hex")).toBe(
    "8003000000000000010203040a0b0c0d" + "00000005" + "8000000700000009" + "fffffffe00000001",
  );
});

test("sequence numbers wrap at 31 bits", () => {
  expect(nextSequence(0x7fffffff)).toBe(0);
  expect(nextSequence(0, -1)).toBe(0x7fffffff);
  expect(sequenceDistance(0, 0x7fffffff)).toBe(1);
  expect(sequenceDistance(0x7fffffff, 0)).toBe(-1);
  expect(sequenceDistance(1000, 10)).toBe(990);
});

const payloadOf = (number: number) => Buffer.from(String(number));

test("a buffer passes on each packet once, in order, whatever arrives", () => {
  const random = new Random(11);
  for (let run = 0; run < 60; run++) {
    const first = run % 2 === 0 ? 0x7fffffff - random.whole(0, 100) : random.whole(0, 1e6);
    const count = 300;
    const buffer = new ReceiveBuffer(256, first);
    const taken: string[] = [];
    let sent = 0;
    let last = -1;
    const missing = new Set<number>();
    while (taken.length < count) {
      const again = [...missing].filter(() => random.chance(0.3));
      const next = sent < count && sent - taken.length < 250 ? [sent++] : [];
      for (const number of [...again, ...next]) {
        if (random.chance(0.2)) {
          missing.add(number);
          continue;
        }
        const packet = { sequence: nextSequence(first, number), payload: payloadOf(number), expectedMs: 0 };
        expect(buffer.add(packet, () => {})).toBe(true);
        last = Math.max(last, number);
        missing.delete(number);
        expect(buffer.add(packet, () => {})).toBe(false);
        for (let one = buffer.take(); one !== null; one = buffer.take()) taken.push(one.toString());
      }
      const reported = new Set<number>();
      for (const [from, to] of buffer.missing())
        for (let at = from; ; at = nextSequence(at)) {
          reported.add(sequenceDistance(at, first));
          if (at === to) break;
        }
      // The last packets may be missing without a sign of it.
      const known = [...missing].filter((number) => number < last);
      expect([...reported].toSorted((a, b) => a - b)).toEqual(known.toSorted((a, b) => a - b));
    }
    expect(taken).toEqual(Array.from({ length: count }, (_, number) => String(number)));
    expect(buffer.lost).toBe(0);
    expect(buffer.available).toBe(256);
  }
});

test("a gap is reported when it is seen, and skipped when what follows it is due", () => {
  const buffer = new ReceiveBuffer(16, 100);
  const gaps: Range[] = [];
  const add = (sequence: number, expectedMs: number) =>
    buffer.add({ sequence, payload: payloadOf(sequence), expectedMs }, (range) => gaps.push(range));
  add(102, 1000);
  add(105, 1010);
  expect(gaps).toEqual([
    [100, 101],
    [103, 104],
  ]);
  expect(buffer.take()).toBeNull();
  buffer.skip(1000);
  expect(buffer.take()).toBeNull();
  buffer.skip(1001);
  expect(buffer.take()?.toString()).toBe("102");
  expect(buffer.take()).toBeNull();
  expect(buffer.lost).toBe(2);
  // The sender has dropped the rest.
  buffer.drop([103, 104], 2000);
  expect([buffer.take(), buffer.take()].map((one) => one?.length)).toEqual([0, 0]);
  expect(buffer.take()?.toString()).toBe("105");
  expect(buffer.lost).toBe(4);
  // Outside of the window, before and after it.
  expect(add(105, 0)).toBe(false);
  expect(add(106 + 16, 0)).toBe(false);
  expect(add(106 + 15, 0)).toBe(true);
  expect(buffer.next).toBe(106);
});

test("the round-trip time follows answers, once each", () => {
  const trip = new RoundTrip();
  for (let now = 0; now < 3000; now += 10) {
    const number = trip.begin(now);
    trip.end(number, now + 40);
    trip.end(number, now + 4000);
  }
  expect(trip.rttUs).toBeCloseTo(40_000, -2);
  expect(trip.varianceUs).toBeLessThan(1000);
  trip.end(99_999, 1e9);
  expect(trip.rttUs).toBeCloseTo(40_000, -2);
});

test("packets are expected by the fastest of the last ones, over the wrap of the sender's clock and its drift", () => {
  const random = new Random(4);
  const clock = new ArrivalClock();
  const offset = 5000;
  const drift = 1.0001;
  let worst = 0;
  for (let ms = 0; ms < 120_000; ms += 10) {
    // The clock wraps after 30 s of it.
    const raw = (2 ** 32 - 30e6 + ms * drift * 1000) % 2 ** 32;
    const now = offset + ms + random.whole(0, 50);
    const expected = clock.expected(Math.floor(raw) >>> 0, now);
    expect(expected).toBeLessThanOrEqual(now);
    if (ms > 1000) worst = Math.max(worst, Math.abs(expected - (offset + ms)));
  }
  expect(worst).toBeLessThan(5);
});

test.each<[string, object | number]>([
  ["publish:live/main:key=live_a", { app: "live", name: "main", query: "key=live_a" }],
  ["publish:live/main:key=live_a&user=ann", { app: "live", name: "main", query: "key=live_a&user=ann" }],
  ["publish:live/main", { app: "live", name: "main", query: "" }],
  ["#!::r=live/main,m=publish,key=live_a", { app: "live", name: "main", query: "key=live_a" }],
  ["#!::m=publish,u=ann,r=live/main,key=live_a", { app: "live", name: "main", query: "user=ann&key=live_a" }],
  ["#!::r=live/main,key=live_a", 1405],
  ["#!::r=live/main,m=request", 1405],
  ["#!::r", 1400],
  ["read:live/main", 1405],
  ["live/main", 1400],
  ["publish:main:key=live_a", 1400],
  ["publish:/main", 1400],
  ["publish:live/", 1400],
  ["", 1400],
])("stream id %s", (id, expected) => {
  const target = readStreamId(id);
  expect(typeof target === "number" ? target : { ...target, query: String(target.query) }).toEqual(expected);
});
