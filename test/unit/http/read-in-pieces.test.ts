import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setImmediate as nextIteration } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { oneAfterAnother } from "#platform/http/one-after-another.ts";
import { suspect, watchReading } from "#platform/http/read-in-pieces.ts";
import { refuseTinyChunks } from "#platform/http/tiny-chunks.ts";
import { type PipelinedRequest, pipelined, written } from "#test/support/pipelined.ts";

/** Two pieces: more than 16 of the smallest requests. */
const PIECES_BYTES = 2048;

type Handler = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<unknown>;

/** A server that counts the requests that were parsed. Suspects each connection from the first byte on with `isSuspected`. */
async function serving(handle: Handler, { isSuspected = false } = {}) {
  const seen = { parsed: 0 };
  const listener = oneAfterAnother((incoming, outgoing) => {
    // Reading fails where the client left.
    handle(incoming, outgoing).catch(() => outgoing.destroy());
  });
  const server = createServer((incoming, outgoing) => {
    seen.parsed++;
    refuseTinyChunks(incoming, outgoing);
    listener(incoming, outgoing);
  });
  watchReading(server);
  if (isSuspected) server.on("connection", suspect);
  const sockets: Socket[] = [];
  server.on("connection", (socket) => sockets.push(socket));
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { seen, sockets, port, base: `http://127.0.0.1:${port}` };
}

/** Answers with the method, the path and the sum of the body's bytes. */
const echo: Handler = async (incoming, outgoing) => {
  let [bytes, sum] = [0, 0];
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    for (const byte of chunk) sum = (sum * 31 + byte) % 1_000_003;
  }
  const text = `${incoming.method} ${incoming.url} ${bytes} ${sum}`;
  outgoing.setHeader("content-length", Buffer.byteLength(text));
  outgoing.end(text);
};
const sumOf = (body: string) => [...Buffer.from(body)].reduce((sum, byte) => (sum * 31 + byte) % 1_000_003, 0);

const until = async (condition: () => boolean) => {
  while (!condition()) await nextIteration();
};

const repeat = (count: number, one: (n: number) => PipelinedRequest) => Array.from({ length: count }, (_, n) => one(n));
const digits = (length: number) => "0123456789".repeat(Math.ceil(length / 10)).slice(0, length);

describe("a connection that is read in pieces", () => {
  test.each<[string, PipelinedRequest[]]>([
    ["one request", repeat(1, (n) => ({ path: `/${n}` }))],
    [
      "a request of exactly a piece",
      repeat(1, () => ({ path: `/${"x".repeat(1024 - written({ path: "/" }).length)}` })),
    ],
    ["many requests", repeat(3000, (n) => ({ path: `/${n}` }))],
    ["headers of several pieces", repeat(20, (n) => ({ path: `/${n}`, headers: { cookie: digits(9000 + n) } }))],
    ["many bodies", repeat(300, (n) => ({ method: "POST", path: `/${n}`, body: digits(n * 50) }))],
    [
      "a large body among others",
      repeat(60, (n) => (n === 30 ? { method: "PUT", path: "/", body: digits(3e6) } : { path: `/${n}` })),
    ],
  ])("%s: each is answered in order, with all its bytes", async (_, requests) => {
    const { base } = await serving(echo, { isSuspected: true });
    const answers = await pipelined(base, requests);
    expect(answers.map(({ text }) => text)).toEqual(
      requests.map(({ method = "GET", path, body = "" }) => `${method} ${path} ${body.length} ${sumOf(body)}`),
    );
  });

  test("a client that ends its side gets all answers", async () => {
    const { port } = await serving(echo, { isSuspected: true });
    const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const all = repeat(200, (n) => ({ path: `/${n}`, ...(n === 199 && { headers: { connection: "close" } }) }));
    client.end(all.map(written).join(""));
    let text = "";
    for await (const chunk of client.setEncoding("utf8")) text += chunk;
    expect(text.match(/GET \/\d+ 0 0/g)).toEqual(all.map(({ path }) => `GET ${path} 0 0`));
  });

  test("a slow handler holds it back: what it has not taken is not read from the network", async () => {
    const blocked = Promise.withResolvers<void>();
    const { port, sockets } = await serving(
      async (incoming, outgoing) => {
        await blocked.promise;
        await echo(incoming, outgoing);
      },
      { isSuspected: true },
    );
    const client = connect({ port, host: "127.0.0.1" });
    client.write("PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 30000000\r\n\r\n");
    let sent = 0;
    const more = () => {
      while (sent++ < 30 && client.write(Buffer.alloc(1e6)));
    };
    client.on("drain", more);
    more();
    await until(() => sockets.length === 1 && (sockets[0] as Socket).bytesRead > 60_000);
    // The kernel takes no more from the client.
    let before = -1;
    for (let still = 0; still < 2000; still = before === client.bytesWritten - client.writableLength ? still + 1 : 0) {
      before = client.bytesWritten - client.writableLength;
      await nextIteration();
    }
    expect((sockets[0] as Socket).bytesRead).toBeLessThan(1e6);
    blocked.resolve();
    const [answer] = await once(client, "data");
    expect(String(answer)).toContain("PUT / 30000");
    client.destroy();
  });
});

describe("an address", () => {
  const flood = (count: number) => repeat(count, (n) => ({ path: `/${n}` }));
  const late: Handler = async (_, outgoing) => {
    for (let left = 100; left > 0; left--) await nextIteration();
    outgoing.end("x");
  };

  test("that sent a flood: of its next connections, and of those that are open, little is parsed at once", async () => {
    const { port, seen, base } = await serving(late);
    const open = connect({ port, host: "127.0.0.1" });
    await once(open, "connect");
    await pipelined(base, flood(100));
    seen.parsed = 0;
    const text = flood(1000).map(written).join("");
    const next = connect({ port, host: "127.0.0.1" });
    for (const socket of [open, next]) {
      socket.write(text);
      socket.resume();
    }
    await until(() => seen.parsed > 2);
    for (let n = 0; n < 20; n++) await nextIteration();
    const smallest = written({ path: "/1" }).length;
    expect(seen.parsed).toBeLessThan((2 * PIECES_BYTES) / smallest);
    open.destroy();
    next.destroy();
  });

  test("that sent a body in tiny chunks is suspected too, and its connection stays open, unread", async () => {
    const { port, seen, sockets } = await serving(echo);
    const client = connect({ port, host: "127.0.0.1" });
    client.write(`POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(5000)}`);
    const [answer] = await once(client, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 400 .*tiny_chunks/s);
    const bytes = (sockets[0] as Socket).bytesRead;
    for (let n = 0; n < 100; n++) {
      client.write("1\r\n \r\n".repeat(1000));
      await nextIteration();
    }
    // A stream keeps up to 64 KiB.
    expect((sockets[0] as Socket).bytesRead).toBeLessThanOrEqual(bytes + 2 ** 16);
    expect(client.readyState).toBe("open");
    client.destroy();
    seen.parsed = 0;
    const next = connect({ port, host: "127.0.0.1" });
    next.write(flood(1000).map(written).join(""));
    await until(() => seen.parsed > 0);
    await nextIteration();
    expect(seen.parsed).toBeLessThan(PIECES_BYTES / written({ path: "/1" }).length);
    next.destroy();
  });

  test("that sends few requests at once is read as always", async () => {
    const { base, seen, port } = await serving(late);
    for (let n = 0; n < 10; n++) await pipelined(base, flood(10));
    seen.parsed = 0;
    const socket = connect({ port, host: "127.0.0.1" });
    socket.write(flood(1000).map(written).join(""));
    await until(() => seen.parsed > 0);
    expect(seen.parsed).toBe(1000);
    socket.destroy();
  });
});
