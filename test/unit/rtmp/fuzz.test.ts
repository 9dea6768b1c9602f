import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { mapBounded } from "#src/lib/base/bounded.ts";
import { amount } from "#test/support/amount.ts";
import type { Random } from "#test/support/crash/random.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { seeded } from "#test/support/seed.ts";
import { ffmpegSession, handMadeSession } from "./sessions.ts";

const SESSIONS = amount(400, 50_000, "FUZZ_RUNS");
const HANDSHAKE_BYTES = 1 + 2 * 1536;
/** Most sessions would end in the handshake otherwise. */
const HANDSHAKE_SHARE = 0.02;
/** Lengths, counts and types at their limits. */
const EXTREMES = [0x00, 0x01, 0x7f, 0x80, 0xff];

function mutated(session: Buffer, random: Random): Buffer {
  let bytes = Buffer.from(session);
  for (let count = random.whole(1, 8); count > 0; count--) {
    const least = random.chance(HANDSHAKE_SHARE) ? 0 : Math.min(HANDSHAKE_BYTES, bytes.length - 1);
    // Half of them in the commands, which all media follow.
    const most = random.chance(0.5) ? Math.min(least + 800, bytes.length - 1) : bytes.length - 1;
    const at = random.whole(least, most);
    const until = Math.min(bytes.length, at + random.whole(1, random.chance(0.2) ? 400 : 8));
    const before = bytes.subarray(0, at);
    const part = bytes.subarray(at, until);
    const after = bytes.subarray(until);
    const kind = random.whole(0, 6);
    if (kind === 0) bytes = Buffer.concat([before, after]);
    else if (kind === 1) bytes = Buffer.concat([before, part, part, after]);
    else if (kind === 2) bytes = Buffer.concat([before, random.bytes(part.length), part, after]);
    else if (kind === 3) bytes = Buffer.from(before);
    else if (kind === 4) bytes[at] = (bytes[at] as number) ^ (1 << random.whole(0, 7));
    else if (kind === 5) bytes.fill(EXTREMES[random.whole(0, EXTREMES.length - 1)] as number, at, until);
    else bytes.set(random.bytes(part.length), at);
    if (bytes.length === 0) return Buffer.from(session);
  }
  return bytes;
}

/** Mutated sessions, and where each is cut in two writes. One at a time: together they are large. */
function* mutations(sessions: Buffer[], random: Random): Generator<[session: Buffer, middle: number]> {
  for (let index = 0; index < SESSIONS; index++) {
    const session = mutated(sessions[index % sessions.length] as Buffer, random);
    yield [session, random.whole(0, session.length)];
  }
}

/** Sends a session in two writes, and waits until the server has closed the connection. */
async function send(port: number, session: Buffer, middle: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {}).resume();
  const closed = once(socket, "close");
  socket.write(session.subarray(0, middle));
  socket.end(session.subarray(middle));
  await closed;
}

test(`${SESSIONS} mutated sessions close their own connections and nothing else`, async () => {
  const limits = { closeTimeoutMs: 500, connectionsPerAddress: 100 };
  const seen = { accepted: 0, samples: 0, ends: new Map<number, number>() };
  const rtmp = await startRtmp({
    limits,
    authorize: async () => {
      const id = seen.accepted++;
      const onEnd = () => void seen.ends.set(id, (seen.ends.get(id) ?? 0) + 1);
      const onSample = () => void seen.samples++;
      return { accepted: true, sink: { onConfig() {}, onSample, onMetadata() {}, onEnd } };
    },
  });
  const sessions = [await ffmpegSession(rtmp), handMadeSession()];
  const random = seeded(20_261_125);
  for (const session of sessions) {
    const before = { ...seen };
    await send(rtmp.port, session, Math.floor(session.length / 2));
    expect(seen.accepted).toBe(before.accepted + 1);
    expect(seen.samples).toBeGreaterThan(before.samples);
  }
  expect(new Set(rtmp.log.map(({ message }) => message))).toEqual(
    new Set(["a publish has started", "a publish has ended"]),
  );

  const reasons = new Set<unknown>();
  const errors: unknown[] = [];
  /** What the test keeps would count as growth of the server. */
  const drain = () => {
    for (const { level, message, fields } of rtmp.log.splice(0)) {
      reasons.add(fields.reason);
      if (level === "error") errors.push({ message, ...fields });
    }
    rtmp.requests.length = 0;
  };
  const memory = process.memoryUsage.rss();
  const runs = mutations(sessions, random);
  await mapBounded(runs, { atOnce: 16 }, async ([session, middle]) => {
    await send(rtmp.port, session, middle);
    drain();
  });
  await expect.poll(() => rtmp.server.connections).toBe(0);
  expect(process.memoryUsage.rss() - memory).toBeLessThan(200 * 1024 * 1024);
  drain();
  // An error in the log is an exception that is no violation of the protocol.
  expect(errors).toEqual([]);
  expect(seen.accepted).toBeGreaterThan(SESSIONS / 4);
  expect([...seen.ends.values()]).toEqual(Array(seen.accepted).fill(1));
  expect(reasons.size).toBeGreaterThan(10);

  const before = seen.samples;
  await send(rtmp.port, sessions[0] as Buffer, 0);
  expect(seen.samples).toBeGreaterThan(before);
});
