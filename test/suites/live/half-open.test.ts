import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { amfObject } from "#src/lib/rtmp/amf0.ts";
import { rows, sample } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd } from "#test/support/folder.ts";
import { command, handshakeBytes, publishBytes } from "#test/support/live/rtmp-client.ts";
import { handshake, request, SrtClient, streamId } from "#test/support/live/srt-client.ts";
import {
  firstSegment,
  type LiveServer,
  listAt,
  liveServer,
  newChannel,
  publish,
  publishSrt,
  untilListed,
  untilLive,
} from "#test/support/live.ts";
import { lineOf } from "#test/support/process.ts";

/** Connections of strangers, in a number that exceeds every budget: publishers are not affected. */

const CONNECTIONS = 1000;
/** The loopback network has more addresses than one. */
const addressOf = (index: number, addresses: number) => `127.0.0.${1 + (index % addresses)}`;

type Flood = {
  name: string;
  /** The publisher of the test comes from the first of them. */
  addresses: number;
  /** A connection that the server has closed is opened again. */
  again?: boolean;
  /** What a connection sends; `each` is sent byte by byte. */
  sends?: Buffer;
  each?: Buffer;
};

const CONNECTED = Buffer.concat([handshakeBytes(), command("connect", 1, amfObject({ app: "live" }))]);
const WRONG_KEY = Buffer.concat([handshakeBytes(), publishBytes({ name: "stage?key=wrong" })]);

const FLOODS: Flood[] = [
  { name: "silent, one address", addresses: 1 },
  { name: "silent, many addresses", addresses: 250 },
  { name: "new ones all the time, one address", addresses: 1, again: true },
  { name: "new ones all the time, many addresses", addresses: 250, again: true },
  { name: "handshakes byte by byte", addresses: 1, again: true, each: handshakeBytes().subarray(0, 1000) },
  { name: "handshakes byte by byte, many addresses", addresses: 250, again: true, each: handshakeBytes() },
  { name: "connected, without a publish", addresses: 1, again: true, sends: CONNECTED },
  { name: "other protocols", addresses: 40, again: true, sends: Buffer.from("GET / HTTP/1.1\r\n\r\n") },
  { name: "wrong keys", addresses: 1, sends: WRONG_KEY },
  { name: "wrong keys, many addresses, all the time", addresses: 250, again: true, sends: WRONG_KEY },
];

/** Opens the connections of a flood, until the test ends. Resolves when each was open. */
async function flood(port: number, { addresses, again = false, sends, each }: Flood): Promise<void> {
  let isOver = false;
  const sockets = new Set<Socket>();
  const open = (index: number): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect({ port, host: "127.0.0.1", localAddress: addressOf(index, addresses) });
      sockets.add(socket);
      let sent = 0;
      const timer = each
        ? setInterval(() => {
            if (sent < each.length) socket.write(each.subarray(sent, ++sent));
          }, 200)
        : undefined;
      socket
        .on("error", () => {})
        .on("data", () => {})
        .on("close", () => {
          clearInterval(timer);
          sockets.delete(socket);
          resolve();
          // Each sender waits for a moment, as one over a network does.
          if (again && !isOver) setTimeout(() => void (isOver || open(index)), 20);
        })
        .on("connect", () => {
          if (sends) socket.write(sends);
          resolve();
        });
    });
  atEnd(() => {
    isOver = true;
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, index) => open(index)));
}

const ABOUT_STRANGERS =
  /does not publish|closed for a new one|violates the protocol|exceeds a limit|was rejected|publish was refused/;
/** Lines of the log about connections that did not publish, at most one for each address and minute. */
function expectFewLines({ stderr }: LiveServer, addresses: number, minutes: number): void {
  const lines = stderr()
    .split("\n")
    .filter((line) => ABOUT_STRANGERS.test(line));
  expect(lines.length).toBeLessThanOrEqual((Math.min(addresses, 100) + 1) * (minutes + 1));
}

/**
 * Where strangers of the publisher's own address open connections all the time, and get as far as it does, it may be closed for one
 * of them, and tries again as encoders do. Elsewhere its first attempt succeeds.
 */
const attemptsOf = ({ again = false, addresses, sends, each }: Flood) =>
  again && addresses === 1 && (sends ?? each) ? 10 : 1;

test.each(sample(FLOODS, 1))("$name: a publisher stays, and a new one connects", async (one) => {
  const server = await liveServer({ env: { VODBOX_LOG_LEVEL: "info" } });
  const channel = await newChannel(server);
  const since = performance.now();
  const running = publish(server, channel, 300);
  await firstSegment(server, running);
  const [video] = await untilLive(server);
  await flood(Number(new URL(server.rtmp).port), one);
  const second = await server.as(channel.key).createChannel({ channel: "second", playback_policy: "public" });
  let attempts = 1;
  let next = publish(server, second.body, 300);
  await until("the second one is live", async () => {
    if (next.child.exitCode !== null) {
      if (attempts === attemptsOf(one)) throw new Error(`The publisher exited: ${next.stderr()}`);
      attempts++;
      next = publish(server, second.body, 300);
    }
    return (await server.call("GET", "/live/second/master.m3u8")).status === 200;
  });
  const { segments } = await listAt(server, video);
  await untilListed(server, video, segments.filter(({ complete }) => complete).length + 1);
  expect(running.child.exitCode).toBeNull();
  expectFewLines(server, one.addresses, Math.ceil((performance.now() - since) / 60_000));
});

test.each(rows(["wrong keys", "first handshakes"], 1))("SRT, %s without end: a publisher connects", async (what) => {
  const server = await liveServer({ env: { VODBOX_LOG_LEVEL: "info", VODBOX_SRT_PORT: "0" } });
  const srt = (await lineOf(server, /^live streams to (srt:\S+)$/m))[1] as string;
  const channel = await newChannel(server);
  const since = performance.now();
  const clients = await Promise.all(Array.from({ length: 50 }, () => SrtClient.open(Number(new URL(srt).port))));
  const cookies = await Promise.all(clients.map((client) => client.cookie()));
  let socketId = 100;
  const timer = setInterval(() => {
    for (const [index, client] of clients.entries())
      client.send(
        what === "wrong keys"
          ? handshake(
              { cookie: cookies[index] as number, socketId: socketId++ },
              request(),
              streamId("publish:live/other:key=no"),
            )
          : handshake({ version: 4, extensionField: 2, type: 1, socketId: socketId++ }),
      );
  }, 50);
  atEnd(() => clearInterval(timer));
  const publisher = publishSrt({ srt }, channel, 300);
  await firstSegment(server, publisher);
  expect(publisher.child.exitCode).toBeNull();
  expectFewLines(server, 1, Math.ceil((performance.now() - since) / 60_000));
});
