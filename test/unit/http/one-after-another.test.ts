import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setImmediate as nextIteration } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { oneAfterAnother } from "#platform/http/one-after-another.ts";
import { type PipelinedRequest, pipeline, pipelined, written } from "#test/support/pipelined.ts";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

type Handle = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** A server that counts the requests in progress, and how many have started. */
async function serving(handle: Handle, perRequest: "queued" | "direct" = "queued") {
  const seen = { started: 0, running: 0, most: 0, closed: 0, parsed: 0 };
  const counted: Handle = (incoming, outgoing) => {
    seen.started++;
    seen.most = Math.max(seen.most, ++seen.running);
    outgoing.once("close", () => seen.running--);
    handle(incoming, outgoing);
  };
  const server = createServer(perRequest === "queued" ? oneAfterAnother(counted) : counted);
  server.prependListener("request", (_, outgoing) => {
    seen.parsed++;
    outgoing.once("close", () => seen.closed++);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, seen, base: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const until = async (condition: () => boolean) => {
  while (!condition()) await nextIteration();
};

/** Answers with the method, the path and the length of the body. */
const echo: Handle = async (incoming, outgoing) => {
  let bytes = 0;
  for await (const chunk of incoming) bytes += chunk.length;
  const { searchParams } = new URL(incoming.url as string, "http://x");
  for (let left = Number(searchParams.get("iterations")); left > 0; left--) await nextIteration();
  const text = `${incoming.method} ${incoming.url} ${bytes}`;
  outgoing.setHeader("content-length", Buffer.byteLength(text));
  outgoing.end(text);
};

const repeat = (count: number, one: (n: number) => PipelinedRequest) => Array.from({ length: count }, (_, n) => one(n));

describe("requests of one connection", () => {
  test.each<[string, PipelinedRequest[]]>([
    ["one", repeat(1, (n) => ({ path: `/${n}` }))],
    ["two", repeat(2, (n) => ({ path: `/${n}` }))],
    ["as many as may wait", repeat(17, (n) => ({ path: `/${n}` }))],
    ["one more", repeat(18, (n) => ({ path: `/${n}` }))],
    ["many", repeat(3000, (n) => ({ path: `/${n}` }))],
    ["many of which the first are slow", repeat(100, (n) => ({ path: `/${n}?iterations=${n < 3 ? 500 : 0}` }))],
    ["many with bodies", repeat(300, (n) => ({ method: "POST", path: `/${n}`, body: "x".repeat(n * 50) }))],
    [
      "a large body among others",
      repeat(60, (n) => (n === 30 ? { method: "PUT", path: "/", body: "x".repeat(1e6) } : { path: `/${n}` })),
    ],
    [
      "a large body at the end",
      repeat(60, (n) => (n === 59 ? { method: "PUT", path: "/", body: "x".repeat(1e6) } : { path: `/${n}` })),
    ],
    [
      "GET and POST alternately",
      repeat(400, (n) => (n % 2 ? { path: `/${n}` } : { method: "POST", path: `/${n}`, body: "{}" })),
    ],
  ])("%s: are processed one at a time and answered in order", async (_, requests) => {
    const { base, seen } = await serving(echo);
    const answers = await pipelined(base, requests);
    expect(answers.map(({ text }) => text)).toEqual(
      requests.map(({ method = "GET", path, body = "" }) => `${method} ${path} ${body.length}`),
    );
    expect(seen).toMatchObject({ started: requests.length, most: 1 });
  });

  test("repeated bursts add no listeners", async () => {
    const { base, server } = await serving(echo);
    const listeners: number[] = [];
    server.on("request", ({ socket }: IncomingMessage) => listeners.push(socket.listenerCount("resume")));
    const { hostname, port } = new URL(base);
    const socket = connect(Number(port), hostname);
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    for (let burst = 1; burst <= 20; burst++) {
      socket.write(
        repeat(3, () => ({ path: "/burst" }))
          .map(written)
          .join(""),
      );
      await until(() => text.split("/burst").length - 1 === burst * 3);
    }
    socket.destroy();
    expect(Math.max(...listeners)).toBe(Math.min(...listeners.slice(3)));
  });

  test("a request with Connection: close is the last one", async () => {
    const { base, seen } = await serving(echo);
    const requests = repeat(6, (n) => ({ path: `/${n}`, ...(n === 5 && { headers: { connection: "close" } }) }));
    expect(await pipelined(base, requests)).toHaveLength(6);
    await until(() => seen.running === 0 && seen.closed === 6);
  });

  test("a client that leaves: what waits is not started, and every response closes", async () => {
    const { base, seen } = await serving(async (_, outgoing) => {
      for (let left = 500; left > 0; left--) await nextIteration();
      outgoing.end("x");
    });
    const socket = pipeline(
      base,
      repeat(500, (n) => ({ path: `/${n}` })),
    );
    await until(() => seen.started > 0);
    socket.destroy();
    await until(() => seen.running === 0 && seen.closed === seen.parsed);
    // What was read before the connection was paused is known only when a response is sent.
    expect(seen.started).toBeLessThanOrEqual(4);
  });

  test("a client that leaves while few wait: the request in progress is aborted at once", async () => {
    const { base, seen } = await serving(() => {});
    const socket = pipeline(
      base,
      repeat(10, (n) => ({ path: `/${n}` })),
    );
    await until(() => seen.parsed === 10);
    socket.destroy();
    await until(() => seen.closed === 10);
    expect(seen.started).toBe(1);
  });

  test("a client that never reads: one response is in memory, and the connection is not read", async () => {
    const body = Buffer.alloc(2 ** 20);
    const { base, server, seen } = await serving((_, outgoing) => outgoing.end(body));
    const read: (() => number)[] = [];
    server.on("connection", (socket) => read.push(() => socket.bytesRead));
    const request = { path: `/${"x".repeat(4000)}` };
    const socket = pipeline(
      base,
      repeat(5000, () => request),
    );
    socket.pause();
    await until(() => seen.started > 0 && seen.running === 1);
    // Other connections are served meanwhile.
    const other = await pipelined(
      base,
      repeat(50, () => ({ path: "/" })),
    );
    expect(other.every(({ bytes }) => bytes === body.length)).toBe(true);
    const bytes = read[0]?.() as number;
    await pipelined(
      base,
      repeat(50, () => ({ path: "/" })),
    );
    expect(read[0]?.()).toBe(bytes);
    expect(bytes).toBeLessThan(2 ** 20);
    expect(seen.most).toBe(2);
    socket.destroy();
  });
});
