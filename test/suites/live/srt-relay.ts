import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Random } from "#test/support/crash/random.ts";
import { atEnd } from "#test/support/folder.ts";

const SHUTDOWN = 0x8005;

export type Relay = {
  port: number;
  /** What the relay did to the packets of both sides. */
  counts: { passed: number; dropped: number; repeated: number; delayed: number };
};

/**
 * A UDP relay to `port` that drops, repeats and delays 5 % of the first packets each, of both sides, in a fixed order. It
 * serves one caller. The end of a stream always arrives: SRT sends a shutdown once, and no later packet shows that the
 * last one was lost.
 */
export async function lossyRelay(
  port: number,
  { share = 0.05, seed = 7, delayMs = 30, packets = 800 } = {},
): Promise<Relay> {
  const random = new Random(seed);
  const counts = { passed: 0, dropped: 0, repeated: 0, delayed: 0 };
  const front = createSocket("udp4");
  const back = createSocket("udp4");
  let caller: { port: number; address: string } | null = null;
  const pass = (packet: Buffer, send: () => void) => {
    counts.passed++;
    if (counts.passed > packets || packet.readUInt16BE() === SHUTDOWN) return send();
    if (random.chance(share)) return void counts.dropped++;
    if (random.chance(share)) {
      counts.delayed++;
      return void setTimeout(send, random.whole(1, delayMs));
    }
    send();
    if (!random.chance(share)) return;
    counts.repeated++;
    send();
  };
  const isOpen = { value: true };
  front.on("message", (packet, from) => {
    caller = from;
    pass(packet, () => isOpen.value && back.send(packet, port, "127.0.0.1"));
  });
  back.on("message", (packet) => {
    const to = caller;
    if (to) pass(packet, () => isOpen.value && front.send(packet, to.port, to.address));
  });
  for (const socket of [front, back]) socket.bind(0, "127.0.0.1");
  await Promise.all([once(front, "listening"), once(back, "listening")]);
  atEnd(() => {
    isOpen.value = false;
    front.close();
    back.close();
  });
  return { port: (front.address() as AddressInfo).port, counts };
}
