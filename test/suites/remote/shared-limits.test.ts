import { expect, test } from "vitest";
import { freePort } from "#scripts/free-port.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer, stopCleanly } from "#test/support/process.ts";
import { type RedisServer, redisServer } from "#test/support/redis.ts";

const CONNECTED = /Redis is connected/;
const AWAY = /Redis is not available/g;

async function serverWith(redis: Pick<RedisServer, "url">, limit = "3/600"): Promise<RunningServer> {
  const settings = { VODBOX_CACHE: redis.url, VODBOX_RATE_LIMIT_DEVICE_TOKENS: limit, VODBOX_LOG_LEVEL: "info" };
  return startServer(emptyFolder(), { env: settings });
}
/** The log of a server, which is on one of its outputs. */
const logOf = ({ stdout, stderr }: RunningServer) => stdout() + stderr();
const logged = (server: RunningServer, pattern: RegExp, times = 1) =>
  expect
    .poll(() => logOf(server).match(new RegExp(pattern.source, "g"))?.length ?? 0, { timeout: 30_000 })
    .toBeGreaterThanOrEqual(times);

/** A request of a limit per client address: 422 for the empty body, or 429. */
async function attempt(server: RunningServer): Promise<{ status: number; left: string | null }> {
  const { status, headers } = await server.as().createDeviceToken({});
  return { status, left: headers.get("ratelimit") };
}
const statuses = async (server: RunningServer, times: number) => {
  const all: number[] = [];
  for (let time = 0; time < times; time++) all.push((await attempt(server)).status);
  return all;
};
const isReady = async (server: RunningServer) => (await server.as().getReadiness()).status;

test("two servers with one Redis share a limit", async () => {
  const redis = await redisServer({ password: "redis-password-of-the-tests" });
  const [one, other] = await Promise.all([serverWith(redis), serverWith(redis)]);
  await Promise.all([one, other].map((server) => logged(server, CONNECTED)));
  expect(await statuses(one, 3)).toEqual([422, 422, 422]);
  const refused = await attempt(other);
  expect([refused.status, refused.left]).toEqual([429, expect.stringMatching(/^"device_tokens";r=0;t=\d+$/)]);
  expect(logOf(one) + logOf(other)).not.toContain("redis-password-of-the-tests");
});

test("while Redis is down both servers count by themselves, and share the limit again when it is back", async () => {
  const redis = await redisServer();
  const servers = await Promise.all([serverWith(redis), serverWith(redis)]);
  await Promise.all(servers.map((server) => logged(server, CONNECTED)));
  expect(await statuses(servers[0], 3)).toEqual([422, 422, 422]);
  expect(await statuses(servers[1], 1)).toEqual([429]);
  await redis.kill();
  for (const server of servers) {
    await logged(server, AWAY);
    const answers = await statuses(server, 4);
    expect(answers).toEqual([422, 422, 422, 429]);
    expect(await isReady(server)).toBe(200);
  }
  const again = await redisServer({ port: Number(new URL(redis.url).port) });
  await Promise.all(servers.map((server) => logged(server, CONNECTED, 2)));
  expect(await statuses(servers[1], 3)).toEqual([422, 422, 422]);
  expect(await statuses(servers[0], 1)).toEqual([429]);
  // One line for each time that it was away: on a busy machine a new connection may be slow and count as another one.
  for (const server of servers)
    expect(logOf(server).match(AWAY)).toHaveLength([...logOf(server).matchAll(new RegExp(CONNECTED, "g"))].length - 1);
  await again.kill();
});

test("a Redis that does not respond delays a request by little, and fails none", async () => {
  const redis = await redisServer();
  const server = await serverWith(redis, "1000/600");
  await logged(server, CONNECTED);
  await attempt(server);
  // A request waits for 100 ms, until the connection is closed after half a second. A busy machine only adds to it.
  const delays: number[] = [];
  while (delays.length < 4 && !delays.some((ms) => ms < 400)) {
    redis.pause();
    const from = performance.now();
    expect(await attempt(server)).toMatchObject({ status: 422 });
    delays.push(performance.now() - from);
    expect(await statuses(server, 20)).toEqual(Array(20).fill(422));
    await logged(server, AWAY, delays.length);
    expect(await statuses(server, 1)).toEqual([422]);
    expect(await isReady(server)).toBe(200);
    redis.resume();
    await logged(server, CONNECTED, delays.length + 1);
  }
  expect(Math.min(...delays)).toBeLessThan(400);
  expect(logOf(server).match(AWAY)).toHaveLength(delays.length);
  redis.pause();
  await stopCleanly(server);
});

test("a server starts and serves while Redis refuses its password or does not run, and logs no password", async () => {
  const redis = await redisServer({ password: "redis-password-of-the-tests" });
  const refused = await serverWith({ url: redis.url.replace("redis-password", "wrong-password") }, "1/600");
  const stopped = await serverWith({ url: `redis://:wrong-password@127.0.0.1:${await freePort()}` }, "1/600");
  for (const server of [refused, stopped]) {
    await logged(server, AWAY);
    expect(await statuses(server, 2)).toEqual([422, 429]);
    expect(await isReady(server)).toBe(200);
    expect(logOf(server)).not.toContain("wrong-password");
  }
});
