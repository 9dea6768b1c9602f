import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import { FastResponse } from "srvx";
import { expect, onTestFinished, test } from "vitest";
import { nodeListener } from "#platform/http/node.ts";
import { onResponseSent } from "#platform/http/response-sent.ts";

const STALL_MS = 300;
/** More than the kernel takes for a client that reads nothing. */
const BYTES = 32 * 2 ** 20;
const PIECE = Buffer.alloc(2 ** 20, "v");

const pieces = function* () {
  for (let sent = 0; sent < BYTES; sent += PIECE.length) yield PIECE;
};
/** As handlers return them: srvx takes Node streams too. */
const response = (body: unknown) => new FastResponse(body as ReadableStream, {});

/** A connection that has sent a request, to a server whose response is `respond`. */
async function requested(respond: () => Response, stallMs = STALL_MS) {
  const server = createServer(nodeListener({ fetch: () => respond() }, stallMs));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const responded = once(server, "request").then(([, outgoing]) => outgoing);
  const client = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" });
  client.on("error", () => {});
  onTestFinished(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return { client, outgoing: await responded };
}

test.each([
  ["a stream from storage", () => response(Readable.from(pieces(), { objectMode: false }))],
  ["a web stream", () => response(Readable.toWeb(Readable.from(pieces(), { objectMode: false })))],
  ["a response that is not of this server", () => new Response("v".repeat(BYTES))],
  ["a text", () => response("v".repeat(BYTES))],
  ["bytes", () => response(Buffer.alloc(BYTES))],
  [
    "bytes that are counted",
    () => {
      const counted = response(Buffer.alloc(BYTES));
      onResponseSent(counted, () => {});
      return counted;
    },
  ],
])("a client that takes nothing of %s is disconnected", async (_what, respond) => {
  const { client, outgoing } = await requested(respond);
  client.pause();
  await once(outgoing, "close");
  expect(outgoing.writableFinished).toBe(false);
});

test("a client that takes a little is served to the end, and then kept", async () => {
  // Longer than a busy machine stops this process.
  const stallMs = 5 * STALL_MS;
  const { client, outgoing } = await requested(() => response(Readable.from(pieces(), { objectMode: false })), stallMs);
  // A little at a time, for twice as long as a client may take nothing.
  const slowUntil = performance.now() + 2 * stallMs;
  client.on("data", () => {
    client.pause();
    setTimeout(() => client.resume(), performance.now() < slowUntil ? 20 : 0);
  });
  const end = await Promise.race(["finish", "close"].map((event) => once(outgoing, event).then(() => event)));
  expect(end).toBe("finish");
  expect(performance.now()).toBeGreaterThan(slowUntil);
  expect(outgoing.socket?.timeout ?? 0).toBe(0);
  expect(client.destroyed).toBe(false);
});

test("a body that is silent for longer stays open", async () => {
  const body = new Readable({ read() {} });
  const { client, outgoing } = await requested(() => response(body));
  body.push("first");
  await once(client, "data");
  // Real time: longer than a client may take nothing.
  await new Promise((resolve) => setTimeout(resolve, 3 * STALL_MS));
  body.push("second");
  const [later] = await once(client, "data");
  expect(String(later)).toContain("second");
  // What waits after the silence has the same limit.
  client.pause();
  for (const piece of pieces()) body.push(piece);
  await once(outgoing, "close");
  expect(outgoing.writableFinished).toBe(false);
});
