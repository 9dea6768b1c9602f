import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { nodeListener } from "#platform/http/node.ts";

/** A server whose response is the length of the body, and what it answers to a body in these chunks. */
async function answerTo(chunk: string, count: number): Promise<string> {
  const fetch = async (request: Request) => new Response(String((await request.text()).length));
  const server = createServer(nodeListener({ fetch }));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const client = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" });
  onTestFinished(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  let answer = "";
  client.setEncoding("utf8").on("data", (data) => {
    answer += data;
  });
  // What is refused is not read to its end.
  client.on("error", () => {});
  // The connection of what is refused stays open for a while.
  const answered = new Promise<void>((resolve) => {
    client.once("close", () => resolve());
    client.on("data", () => answer.endsWith("}") && resolve());
  });
  client.write("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(count));
  client.write("0\r\n\r\n");
  await answered;
  return answer;
}

test.each([
  ["250 chunks of one byte", "x", 250, "200", "250"],
  ["a hundred thousand of 16 bytes", "x".repeat(16), 100_000, "200", "1600000"],
  ["500 of one byte", "x", 500, "400", "larger ones"],
  ["a hundred thousand of one byte", "x", 100_000, "400", "larger ones"],
  ["three thousand of 7 bytes", "x".repeat(7), 3000, "400", "larger ones"],
])("a body in %s", async (_, chunk, count, status, body) => {
  const answer = await answerTo(chunk, count);
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(answer).toContain(body);
});
