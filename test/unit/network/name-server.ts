import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv4 } from "node:net";
import { atEnd } from "#test/support/folder.ts";

/** Successive answers to a name: the last one repeats. */
export type Zone = Record<string, readonly (readonly string[])[]>;

/**
 * A name server (RFC 1035) on loopback that answers from `zone`, differently for every query if desired. A and AAAA of
 * one query count once.
 */
export async function startNameServer(zone: Zone): Promise<{ address: string; asked: string[] }> {
  const socket = createSocket("udp4");
  const turns = new Map<string, number>();
  const asked: string[] = [];
  socket.on("message", (query, from) => {
    const { name, type, end } = questionOf(query);
    const answers = zone[name] ?? [];
    const turn = turns.get(`${name}/${type}`) ?? 0;
    turns.set(`${name}/${type}`, turn + 1);
    asked.push(`${name}/${type}`);
    const addresses = (answers[Math.min(turn, answers.length - 1)] ?? []).filter(
      (each) => isIPv4(each) === (type === 1),
    );
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(answers.length === 0 ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(addresses.length, 6);
    const records = addresses.map((address) => {
      const data = isIPv4(address) ? Buffer.from(address.split(".").map(Number)) : ipv6Bytes(address);
      const record = Buffer.alloc(12);
      record.writeUInt16BE(0xc00c, 0);
      record.writeUInt16BE(type, 2);
      record.writeUInt16BE(1, 4);
      record.writeUInt16BE(data.length, 10);
      return Buffer.concat([record, data]);
    });
    socket.send(Buffer.concat([head, query.subarray(12, end), ...records]), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  atEnd(async () => {
    socket.close();
  });
  return { address: `127.0.0.1:${socket.address().port}`, asked };
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function ipv6Bytes(address: string): Buffer {
  const [head = "", tail = ""] = address.split("::");
  const groups = (text: string) => text.split(":").filter(Boolean);
  const zeros = Array.from({ length: 8 - groups(head).length - groups(tail).length }, () => "0");
  const all = [...groups(head), ...(address.includes("::") ? zeros : []), ...groups(tail)];
  return Buffer.from(all.map((group) => group.padStart(4, "0")).join(""), "hex");
}
