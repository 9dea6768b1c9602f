import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { atEnd } from "./folder.ts";

export type Relay = {
  base: string;
  /** Bytes that clients have sent since the last `reset`. */
  sent(): number;
  reset(): void;
  /** Its target: a port on loopback. */
  lead(port: number): void;
  /** Pauses every connection after this many bytes; resolves when it does. */
  holdAfter(bytes: number): Promise<void>;
  /** Breaks a connection after this many bytes, once for each call. */
  cutAfter(bytes: number, times: number): void;
  cuts(): number;
  close(): Promise<void>;
};

/** A relay to a server that counts what clients send, and can be paused or cut. */
export async function startRelay(): Promise<Relay> {
  let port = 0;
  let sent = 0;
  let hold: { after: number; reached: () => void } | null = null;
  let cut: { after: number; times: number } | null = null;
  let cuts = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    let own = 0;
    const both = [client, upstream];
    for (const socket of both) {
      sockets.add(socket);
      socket
        .on("error", () => {})
        .on("close", () => {
          sockets.delete(socket);
          for (const each of both) each.destroy();
        });
    }
    client.on("data", (chunk) => {
      own += chunk.length;
      if (cut && cut.times > 0 && own >= cut.after) {
        cut.times--;
        cuts++;
        // Bytes before the cut are delivered.
        upstream.write(chunk, () => {
          for (const each of both) each.resetAndDestroy();
        });
        client.pause();
        return;
      }
      sent += chunk.length;
      if (hold && sent >= hold.after) {
        client.pause();
        return hold.reached();
      }
      if (!upstream.write(chunk)) client.pause();
    });
    upstream.on("drain", () => client.resume());
    upstream.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  atEnd(close);
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: () => sent,
    reset() {
      sent = 0;
      hold = null;
      cut = null;
    },
    lead: (to) => {
      port = to;
    },
    holdAfter: (after) =>
      new Promise((reached) => {
        hold = { after, reached };
      }),
    cutAfter: (after, times) => {
      cut = { after, times };
    },
    cuts: () => cuts,
    close,
  };
}
