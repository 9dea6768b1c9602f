import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "./folder.ts";

export type Received = { body: string; json: any; headers: IncomingHttpHeaders; at: number };
/** The receiver's response to a delivery; 200 by default. */
export type Behaviour = (delivery: Received, response: ServerResponse) => unknown;

export type Receiver = { url: string; received: Received[]; behave(next: Behaviour): void; close(): Promise<void> };

/** A server on loopback that receives deliveries. */
export async function receiver(behaviour?: Behaviour): Promise<Receiver> {
  const received: Received[] = [];
  let behave: Behaviour = behaviour ?? (() => {});
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const delivery = { body, json: JSON.parse(body), headers: request.headers, at: performance.now() };
    received.push(delivery);
    const answer = await behave(delivery, response);
    if (answer !== undefined) return;
    if (!response.writableEnded) response.end("thanks");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  atEnd(close);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    behave: (next) => {
      behave = next;
    },
    close,
  };
}

export const status = (code: number, headers: Record<string, string> = {}): Behaviour => {
  return (_, response) => {
    response.writeHead(code, headers).end("no");
  };
};
