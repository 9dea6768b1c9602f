import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { atEnd } from "./folder.ts";

/** `isFinal`: after it the server is unreachable until the relay is connected to it again. */
export type Cut = { side: "question" | "answer"; number: number; isFinal?: boolean };
export type CuttingRelay = {
  url: string;
  /** Its target: a port on loopback, or none, in which case connections are refused. */
  lead(port: number | null): void;
  /** Breaks the connection once, instead of forwarding the message with this number from now. */
  cut(cut: Cut): void;
  /** Whether the last cut has been made. */
  isCut(): boolean;
};

/**
 * A relay to a database server that breaks the connection on command: before a request arrives, or before its response
 * does.
 */
export async function startCuttingRelay({ refuseSockets = false } = {}): Promise<CuttingRelay> {
  let port: number | null = null;
  let wanted: Cut | null = null;
  const passed = { question: 0, answer: 0 };
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    if (port === null) return void client.resetAndDestroy();
    const upstream = connect(port, "127.0.0.1");
    const both = { question: client, answer: upstream };
    const breakLine = () => {
      for (const each of [client, upstream]) each.destroy();
    };
    for (const side of ["question", "answer"] as const) {
      sockets.add(both[side]);
      const other = side === "question" ? upstream : client;
      both[side]
        .setNoDelay()
        .on("error", () => {})
        .on("close", () => {
          sockets.delete(both[side]);
          breakLine();
        })
        .on("data", (chunk: Buffer) => {
          if (refuseSockets && side === "question" && /^GET .*\r\nupgrade: websocket/is.test(chunk.toString("latin1")))
            return breakLine();
          passed[side]++;
          if (wanted?.side === side && passed[side] === wanted.number) {
            if (wanted.isFinal) port = null;
            wanted = null;
            return breakLine();
          }
          other.write(chunk);
        });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lead(to) {
      port = to;
      for (const socket of sockets) socket.destroy();
    },
    cut(cut) {
      passed.question = 0;
      passed.answer = 0;
      wanted = cut;
    },
    isCut: () => wanted === null,
  };
}
