import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { atEnd } from "./folder.ts";

export type Relay = {
  base: string;
  /** Bytes that clients have sent on since the last `reset`. */
  sent(): number;
  reset(): void;
  /** Where it leads: a port of loopback. */
  lead(port: number): void;
  /** Holds every line still once so many bytes went through; resolves when it does. */
  holdAfter(bytes: number): Promise<void>;
  /** Breaks a line once so many bytes went through it; as often as it is asked to. */
  cutAfter(bytes: number, times: number): void;
  cuts(): number;
  close(): Promise<void>;
};

/** A line to a server that counts what clients send, and can be held still or cut. */
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
        // What came before the cut does get there.
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
