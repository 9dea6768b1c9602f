import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setImmediate as nextIteration } from "node:timers/promises";
import type { H3 } from "h3";
import { FastResponse } from "srvx";
import { afterEach, expect, test } from "vitest";
import { encodedText } from "#platform/http/content-encoding.ts";
import { nodeListener } from "#platform/http/node.ts";

const VIEWERS = 200;
/** What sending one response takes here. */
const SEND_MS = 0.5;

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

test("responses that are complete at the same time are sent in several iterations of the event loop", async () => {
  const part = Promise.withResolvers<void>();
  let waiting = 0;
  let iteration = 0;
  const sentIn: number[] = [];
  const fetch = async () => {
    waiting++;
    await part.promise;
    return new FastResponse("part");
  };
  const listener = nodeListener({ fetch } as unknown as H3);
  const server = createServer((incoming, outgoing) => {
    const { end } = outgoing;
    outgoing.end = ((...parameters: Parameters<typeof end>) => {
      for (const until = performance.now() + SEND_MS; performance.now() < until; );
      sentIn.push(iteration);
      return end.apply(outgoing, parameters);
    }) as typeof end;
    listener(incoming, outgoing);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const viewers = Array.from({ length: VIEWERS }, () => connect(port, "127.0.0.1"));
  for (const viewer of viewers) viewer.write("GET / HTTP/1.1\r\nhost: test\r\n\r\n");
  while (waiting < VIEWERS) await nextIteration();
  part.resolve();
  const received = Promise.all(viewers.map((viewer) => once(viewer, "data")));
  for (; sentIn.length < VIEWERS; iteration++) await nextIteration();
  for (const [data] of await received) expect(String(data)).toMatch(/^HTTP\/1\.1 200 [\s\S]*part$/);
  // 100 ms of work, of which an iteration may take 4 ms, and one response more.
  expect(new Set(sentIn).size).toBeGreaterThan(10);
});

test.each(["identity", "br"])("the same text is encoded once for all who wait for it: %s", async (coding) => {
  const playlist = {};
  let encoded = 0;
  const text = async () => {
    encoded++;
    return "#EXTM3U\n".repeat(1000);
  };
  const context = { headers: new Headers({ "accept-encoding": coding }), method: "GET" };
  const answers = [];
  for (let viewer = 0; viewer < 5; viewer++)
    answers.push(await encodedText(context, { text, headers: {}, sameFor: playlist }));
  const bodies = await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  expect(new Set(bodies.map((body) => Buffer.from(body).toString("hex"))).size).toBe(1);
  expect(encoded).toBe(1);
});
