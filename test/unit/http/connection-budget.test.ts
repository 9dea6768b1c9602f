import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, get, type IncomingMessage } from "node:http";
import { createServer as createSecureServer, get as getSecurely } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import pino from "pino";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type ConnectionLimits, limitConnections } from "#platform/http/connection-budget.ts";
import { until } from "#test/support/descendants.ts";
import { temporaryFolder } from "#test/support/media/sources.ts";

/** Strangers: 127.0.0.1 is the machine itself, which is not limited. */
const [FLOOD, CLIENT, PROXY] = ["127.0.0.2", "127.0.0.3", "127.0.1.1"] as const;
const LIMITS: ConnectionLimits = { perAddress: 20, inAll: 1000, trusted: ["127.0.1.0/24"] };
const folder = temporaryFolder("connection-budget");
let pair: { key: Buffer; cert: Buffer };
beforeAll(() => {
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", ...kind, "-keyout", key, "-out", cert, "-subj", "/CN=x"], { stdio: "pipe" });
  pair = { key: readFileSync(key), cert: readFileSync(cert) };
});

async function limited(change: Partial<ConnectionLimits> = {}, isSecure = false) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const respond = (_: unknown, response: { end(text: string): void }) => response.end("served");
  const server = isSecure ? createSecureServer(pair, respond) : createServer(respond);
  limitConnections(server, { ...LIMITS, ...change }, log);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  const connected = async (localAddress: string, sent = "") => {
    const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => {});
    sockets.push(socket);
    await once(socket, "connect");
    if (sent) socket.write(sent);
    return socket;
  };
  const requested = (localAddress: string) =>
    new Promise<string>((resolve, reject) => {
      const options = { port, host: "127.0.0.1", localAddress, agent: false, rejectUnauthorized: false };
      const request = (isSecure ? getSecurely : get)(options, async (response: IncomingMessage) => {
        resolve(`${response.statusCode} ${await text(response)}`);
      });
      request.on("error", reject);
    });
  const stay = () => sockets.filter((socket) => !socket.closed).length;
  return { server, lines, connected, requested, stay };
}

describe.each([
  { attack: "connections that send nothing", sent: "" },
  { attack: "slow headers", sent: "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: " },
  { attack: "requests that keep their connection", sent: "GET / HTTP/1.1\r\nHost: x\r\n\r\n" },
  { attack: "unfinished TLS handshakes", sent: "\x16\x03\x01", isSecure: true },
  { attack: "connections that send nothing, with TLS", sent: "", isSecure: true },
])("$attack", ({ sent, isSecure }) => {
  test("one address has its limit, another client is served, and one line is logged", async () => {
    const { connected, requested, server, lines } = await limited({}, isSecure);
    for (let count = 0; count < 60; count++) await connected(FLOOD, sent);
    await until("what is too much is closed", async () => (await count(server)) === LIMITS.perAddress);
    expect(await requested(CLIENT)).toBe("200 served");
    expect(lines).toEqual([expect.objectContaining({ address: FLOOD, connections: 20, level: 40 })]);
  });
});

test("a client that is refused learns why, and is served when its connections are closed", async () => {
  const { connected, requested, server } = await limited();
  const all = await Promise.all(Array.from({ length: LIMITS.perAddress }, () => connected(FLOOD)));
  await until("they are open", () => count(server).then((open) => open === LIMITS.perAddress));
  expect(await text(await connected(FLOOD))).toMatch(
    /^HTTP\/1.1 429 .*\r\nRetry-After: 5\r\n.*"code":"rate_limited"\}$/s,
  );
  for (const socket of all) socket.destroy();
  await until("they are closed", () => count(server).then((open) => open === 0));
  expect(await requested(FLOOD)).toBe("200 served");
});

test.each(["127.0.0.1", PROXY])("the connections of %s are not limited", async (address) => {
  const { connected, requested, stay, lines } = await limited({ perAddress: 5 });
  for (let count = 0; count < 20; count++) await connected(address);
  expect(await requested(address)).toBe("200 served");
  expect([stay(), lines]).toEqual([20, []]);
});

test.each([false, true])("a flood from many addresses makes place for another client; TLS: %s", async (isSecure) => {
  const { connected, requested, stay, server } = await limited({ inAll: 30 }, isSecure);
  for (let count = 0; count < 60; count++) await connected(`127.0.2.${1 + (count % 12)}`);
  await until("the oldest are closed", () => stay() === 30);
  expect(await requested(CLIENT)).toBe("200 served");
  expect(await count(server)).toBeLessThanOrEqual(30);
});

test("the address with the most connections loses one, and not one that waits for its response", async () => {
  const { server, connected, stay } = await limited({ inAll: 10 });
  server.removeAllListeners("request");
  const waiting = once(server, "request");
  const first = await connected(CLIENT, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const [, response] = await waiting;
  for (let count = 0; count < 30; count++) await connected(FLOOD);
  await until("the others are closed", () => stay() === 10);
  response.end("late");
  expect(await text(first.unref().end())).toMatch(/late$/);
});

const count = (server: ReturnType<typeof createServer>) =>
  new Promise<number>((resolve, reject) =>
    server.getConnections((error, open) => (error ? reject(error) : resolve(open))),
  );
