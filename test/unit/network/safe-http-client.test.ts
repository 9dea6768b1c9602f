import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { setImmediate as nextIteration } from "node:timers/promises";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { isInRanges, isPublic, rangesOf } from "#src/lib/network/guard.ts";
import { BlockedDestination, OutboundFailure } from "#src/lib/network/http-client.ts";
import { post } from "#src/lib/network/post.ts";
import { createSafeHttpClient } from "#src/lib/network/safe-http-client.ts";
import { atEnd } from "#test/support/folder.ts";
import { startNameServer } from "./name-server.ts";

/** Listens on every address of this machine and records every connection that should have been blocked. */
let trap: { port: number; reached: string[] };
/** Allowed by the operator, to represent the public internet. */
const OPEN = "127.0.0.2";

async function listening(server: Server | ReturnType<typeof createTcpServer>, host: string): Promise<number> {
  server.listen(0, host);
  await once(server, "listening");
  atEnd(async () => {
    if ("closeAllConnections" in server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  const reached: string[] = [];
  const server = createTcpServer((socket) => {
    reached.push(socket.localAddress ?? "");
    socket.destroy();
  });
  trap = { port: await listening(server, "::"), reached };
});

type Doors = Parameters<typeof createSafeHttpClient>[0];
const send = async (url: string, options: Doors = {}, more: Partial<Parameters<typeof post>[2]> = {}) => {
  const door = createSafeHttpClient(options);
  try {
    const headers = { "content-type": "application/json" };
    return await post(door, url, { headers, body: "{}", timeoutMs: 3000, maxAnswerBytes: 1024, ...more });
  } finally {
    door.close();
  }
};

// biome-ignore format: a table to be read down.
const LITERALS = [
  "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.255.255.254", "127.0.0.1.",
  "0", "0.0.0.0", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "169.254.0.1",
  "2852039166", "0xa9fea9fe", "100.64.0.1", "100.100.100.200", "100.127.255.255", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.18.0.1",
  "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
  "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]",
  "[fe80::1]", "[febf::1]", "[fec0::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]",
  "[64:ff9b:1::a00:1]", "[2002:7f00:1::]", "[2002:a00:1::1]", "[2001::1]", "[2001:0:7f00:1::1]", "[2001:db8::1]", "[100::1]", "[2001:10::1]",
  "[3fff::1]", "[5f00::1]", "[4000::1]", "[1::1]", "①②⑦.⓪.⓪.①", "127。0。0。1", "１２７.0.0.1", "localhost", "LOCALHOST", "a.localhost", "localhost.",
];

describe("addresses that are not public are never connected to", () => {
  test.each(LITERALS)("%s", async (host) => {
    for (const scheme of ["https", "http"]) {
      const sent = send(`${scheme}://${host}:${trap.port}/hook`);
      await expect(sent).rejects.toBeInstanceOf(BlockedDestination);
    }
    expect(trap.reached).toEqual([]);
  });

  test.each([
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "https://user:pass@example.com/",
    "https://:x@example.com/",
    "https://",
    "not an address",
    "//example.com",
    "https://example.com:99999/",
    "https://[::1%25lo]/",
    "javascript:alert(1)",
    "http://example.com/",
  ])("%s", async (url) => {
    await expect(send(url)).rejects.toBeInstanceOf(BlockedDestination);
  });

  test("a name that resolves to one, also as one of many addresses, in either family", async () => {
    const zone = {
      "private.test": [["10.0.0.1"]],
      "loopback.test": [["127.0.0.1"]],
      "mixed.test": [["93.184.216.34", "127.0.0.1"]],
      "mixed6.test": [["2606:2800:220:1:248:1893:25c8:1946", "::1"]],
      "families.test": [["93.184.216.34", "fd00::1"]],
      "mapped.test": [["::ffff:7f00:1"]],
      "nat64.test": [["64:ff9b::7f00:1"]],
      "metadata.test": [["169.254.169.254"]],
    };
    const { address, asked } = await startNameServer(zone);
    for (const [name, answers] of Object.entries(zone)) {
      const sent = send(`https://${name}:${trap.port}/`, { dnsServers: [address] });
      await expect(sent, name).rejects.toBeInstanceOf(BlockedDestination);
      // Tenants read it: the resolved address may belong to the operator's own network.
      const { message } = (await sent.catch((error: Error) => error)) as Error;
      expect(message).toContain(name);
      for (const resolved of answers.flat()) expect(message).not.toContain(resolved);
      expect(asked, name).toContain(`${name}/1`);
    }
    expect(trap.reached).toEqual([]);
  });
});

test("public addresses are recognized", () => {
  for (const address of ["8.8.8.8", "93.184.216.34", "1.1.1.1", "::ffff:8.8.8.8", "2606:4700::1111", "2a00:1450::1"])
    expect(isPublic(address), address).toBe(true);
  expect(isInRanges("10.1.2.3", rangesOf(["10.0.0.0/8"]))).toBe(true);
  expect(isInRanges("::ffff:10.1.2.3", rangesOf(["10.0.0.0/8"]))).toBe(true);
  expect(isInRanges("11.0.0.1", rangesOf(["10.0.0.0/8", "fd00::/8", "192.168.1.1"]))).toBe(false);
  expect(isInRanges("192.168.1.1", rangesOf(["192.168.1.1"]))).toBe(true);
});

/** A receiver at an allowed address; `answer` as a request listener. */
async function receiver(answer: RequestListener) {
  const seen: { local: string; host: string | undefined; body: string; socket: Socket }[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      seen.push({
        local: request.socket.localAddress ?? "",
        host: request.headers.host,
        body,
        socket: request.socket,
      });
      answer(request, response);
    });
  });
  // All of loopback, so that redirects between addresses are recorded.
  const port = await listening(server, "0.0.0.0");
  return { port, seen };
}
const open: Doors = { allowCidrs: [`${OPEN}/32`] };

describe("a range that the operator has allowed", () => {
  test("is reachable, also with plain http, and no other address", async () => {
    const { port, seen } = await receiver((_, response) => response.end("thanks"));
    expect(await send(`http://${OPEN}:${port}/hook`, open)).toMatchObject({ status: 200, snippet: "thanks" });
    expect(seen).toMatchObject([{ local: OPEN, host: `${OPEN}:${port}`, body: "{}" }]);
    await expect(send(`http://127.0.0.3:${port}/`, open)).rejects.toBeInstanceOf(BlockedDestination);
    await expect(send(`http://8.8.8.8:${port}/`, open)).rejects.toThrow(/Plain http/);
    expect(seen).toHaveLength(1);
  });

  test("a redirect out of it is not followed", async () => {
    for (const location of ["http://169.254.169.254/latest/meta-data/", `http://127.0.0.1:${trap.port}/`]) {
      const { port } = await receiver((_, response) => response.writeHead(307, { location }).end());
      expect((await send(`http://${OPEN}:${port}/`, open)).status).toBe(307);
    }
    expect(trap.reached).toEqual([]);
  });

  test("is checked at every request: a name that resolves to another address is not followed, with a kept connection or without", async () => {
    const { port, seen } = await receiver((_, response) => response.end("ok"));
    const { address } = await startNameServer({ "rebind.test": [[OPEN], [OPEN], ["127.0.0.1"]] });
    const door = createSafeHttpClient({ ...open, dnsServers: [address] });
    const again = () =>
      post(door, `http://rebind.test:${port}/`, { headers: {}, body: "", timeoutMs: 3000, maxAnswerBytes: 10 });
    expect((await again()).status).toBe(200);
    expect((await again()).status).toBe(200);
    await expect(again()).rejects.toBeInstanceOf(BlockedDestination);
    door.close();
    expect(seen.map(({ local }) => local)).toEqual([OPEN, OPEN]);
    // The second request used the first one's connection.
    expect(seen[0]?.socket).toBe(seen[1]?.socket);
  });

  test("is resolved once per request: later answers of the name server do not count", async () => {
    const { port, seen } = await receiver((_, response) => response.end("ok"));
    const { address, asked } = await startNameServer({ "quick.test": [[OPEN], ["127.0.0.1"]] });
    expect((await send(`http://quick.test:${port}/`, { ...open, dnsServers: [address] })).status).toBe(200);
    expect(seen.map(({ local }) => local)).toEqual([OPEN]);
    expect(asked.toSorted()).toEqual(["quick.test/1", "quick.test/28"]);
  });
});

describe("a receiver that misbehaves", () => {
  afterEach(() => void vi.useRealTimers());
  const failure = async (url: string, options: Doors = open, timeoutMs = 300) => {
    const error = await send(url, options, { timeoutMs }).then(
      () => null,
      (thrown) => thrown,
    );
    expect(error).toBeInstanceOf(OutboundFailure);
    return { code: (error as OutboundFailure).code };
  };
  /** The failure of a request that times out exactly after its time, by a clock that begins when `isSent` is true. */
  async function timedOut(url: string, options: Doors, isSent: () => boolean) {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let isSettled = false;
    const failed = failure(url, options, 300).finally(() => {
      isSettled = true;
    });
    failed.catch(() => {});
    while (!isSent()) await nextIteration();
    vi.advanceTimersByTime(299);
    for (let iteration = 0; iteration < 10; iteration++) await nextIteration();
    expect(isSettled).toBe(false);
    vi.advanceTimersByTime(1);
    return failed;
  }

  test("never responding takes the configured time, and no more", async () => {
    const { port, seen } = await receiver(() => {});
    const failed = await timedOut(`http://${OPEN}:${port}/`, open, () => seen.length === 1);
    expect(failed).toEqual({ code: "timeout" });
  });

  test("sending its header slowly takes no more either", async () => {
    const server = createTcpServer((socket) => {
      socket.on("error", () => {}).write("HTTP/1.1 200 OK\r\n");
      const drip = setInterval(() => socket.write("x: y\r\n"), 20);
      socket.on("close", () => clearInterval(drip));
    });
    const port = await listening(server, OPEN);
    expect(await failure(`http://${OPEN}:${port}/`)).toMatchObject({ code: "timeout" });
  });

  test("sending its body slowly is judged by its status, within the time", async () => {
    const { port } = await receiver((_, response) => {
      const drip = setInterval(() => response.write("x"), 20);
      response.on("close", () => clearInterval(drip));
    });
    // The body never ends, so whenever there is a result, it was cut.
    expect((await send(`http://${OPEN}:${port}/`, open, { timeoutMs: 400 })).status).toBe(200);
  });

  test("responding without end is cut off, and the beginning is kept", async () => {
    const { port } = await receiver((_, response) => {
      response.on("error", () => {});
      const more = () => {
        while (!response.destroyed && response.write("y".repeat(65_536)));
        if (!response.destroyed) response.once("drain", more);
      };
      more();
    });
    const before = process.memoryUsage().rss;
    const answer = await send(`http://${OPEN}:${port}/`, open);
    expect([answer.status, answer.snippet]).toEqual([200, "y".repeat(1024)]);
    expect(process.memoryUsage().rss - before).toBeLessThan(32 * 2 ** 20);
  });

  test.each([
    ["closing early", (socket: Socket) => socket.destroy(), "connection"],
    ["speaking something else", (socket: Socket) => socket.end("SSH-2.0-x\r\n"), "protocol"],
    ["an endless head", (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}`), "protocol"],
  ])("by %s is reported", async (_, behave, expected) => {
    const port = await listening(
      createTcpServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => behave(socket));
      }),
      OPEN,
    );
    expect(await failure(`http://${OPEN}:${port}/`)).toMatchObject({ code: expected });
  });

  test("by being unreachable, or by its own certificate, is reported", async () => {
    const { port } = await receiver((_, response) => response.end());
    expect(await failure(`https://${OPEN}:${port}/`)).toMatchObject({ code: "tls" });
    const { address } = await startNameServer({});
    expect(await failure("https://nowhere.test/", { dnsServers: [address] }, 3000)).toMatchObject({ code: "dns" });
  });

  test("with an unresponsive name server takes the configured time", async () => {
    let questions = 0;
    const socket = createSocket("udp4").on("message", () => questions++);
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    atEnd(() => socket.close());
    const unresponsive = { dnsServers: [`127.0.0.1:${socket.address().port}`] };
    expect(await timedOut("https://slow.test/", unresponsive, () => questions > 0)).toEqual({ code: "timeout" });
  });
});
