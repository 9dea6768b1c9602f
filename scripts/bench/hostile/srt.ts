import { createSocket } from "node:dgram";
import { ATTACKER, type HostileAttack, repeatedly } from "./attack.ts";

const HEADER_BYTES = 16;
const CONTENT_BYTES = 48;
const SOCKETS = 64;

/** An induction request (draft-sharabayko-srt-01, 4.3.1.1) of a caller with this id. */
function induction(socketId: number): Buffer {
  const packet = Buffer.alloc(HEADER_BYTES + CONTENT_BYTES);
  packet.writeUInt16BE(0x8000);
  packet.writeUInt32BE(4, HEADER_BYTES);
  packet.writeUInt16BE(2, HEADER_BYTES + 6);
  for (const [index, word] of [socketId, 1500, 8192, 1, socketId].entries())
    packet.writeUInt32BE(word, HEADER_BYTES + 8 + 4 * index);
  return packet;
}

const datagram = (n: number) => (n % 4 === 3 ? Buffer.alloc(1316, n) : induction(n >>> 0 || 1));

export const srt: HostileAttack[] = [
  {
    name: "half-open SRT, and datagrams of nonsense",
    async run({ srtPort }, signal) {
      const sockets = Array.from({ length: SOCKETS }, () => createSocket("udp4").on("error", () => {}));
      for (const socket of sockets) socket.bind(0, ATTACKER);
      await repeatedly(signal, SOCKETS, async (n) => {
        const socket = sockets[n % SOCKETS] as (typeof sockets)[number];
        for (let packet = 0; packet < 20; packet++) socket.send(datagram(n * 20 + packet), srtPort, "127.0.0.1");
      });
      for (const socket of sockets) socket.close();
    },
  },
];
