import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { descendantsOf, until } from "#test/support/descendants.ts";
import { liveServer, newChannel, publish } from "#test/support/live.ts";
import { stopCleanly } from "#test/support/process.ts";

/** Several processes of a server: one receives the stream, all serve it. */

const TOKEN = "a-token-of-the-gateway-0123456789";

test("every process allows publishing with a key from the moment that another one returned it", async () => {
  const server = await liveServer({ env: { VODBOX_PROCESSES: "3", VODBOX_LIVE_TOKEN: TOKEN } });
  const { key, id } = await newChannel(server);
  // Each request has a connection of its own, which the system gives to one of the processes.
  const headers = { connection: "close" };
  const authorized = async (streamKey: string) => {
    const body = { action: "publish", path: "live/stage", password: streamKey, protocol: "rtmp" };
    const options = { headers: { ...headers, authorization: `Bearer ${TOKEN}` }, body };
    return (await server.call("POST", "/api/v1/live/auth", options)).status;
  };
  for (let round = 0; round < amount(2, 5); round++) {
    const { body } = await server.as({ key, headers }).rotateStreamKey(id);
    const statuses = await Promise.all(Array.from({ length: 12 }, () => authorized(body.stream_key)));
    expect(new Set(statuses), `round ${round}`).toEqual(new Set([204]));
  }
  await stopCleanly(server);
});

test("every process serves a stream, also one that starts while it runs", async () => {
  const server = await liveServer({ env: { VODBOX_PROCESSES: "3" } });
  const channel = await newChannel(server);
  const { as, call } = server;
  const { key, id } = channel;
  const publishing = publish(server, channel, 60);
  // Each request has a connection of its own, which the system gives to one of the processes.
  const get = (path: string) => fetch(new URL(path, server.base), { headers: { connection: "close" } });
  const master = "/live/stage/master.m3u8";
  const answers = async () => Promise.all(Array.from({ length: 12 }, async () => (await get(master)).status));
  await until("all processes have it", async () => (await answers()).every((status) => status === 200));
  const list = await (await get(master)).text();
  const video = new URL(
    list.split("\n").findLast((line) => line !== "" && !line.startsWith("#")) as string,
    `${server.base}${master}`,
  );
  const numbers = async () =>
    Promise.all(
      Array.from({ length: 12 }, async () => {
        const text = await (await get(video.pathname)).text();
        const segments = text.match(/^\d{5}\.m4s$/gm) ?? [];
        const part = /URI="(\d{5}\.\d+\.m4s)"/.exec(text.slice(text.indexOf("#EXT-X-PART:")))?.[1];
        expect((await get(new URL(part as string, video).pathname)).status).toBe(200);
        return segments.length;
      }),
    );
  const seen = await numbers();
  expect(Math.max(...seen) - Math.min(...seen)).toBeLessThanOrEqual(1);

  const processes = () => descendantsOf(server.child.pid as number).filter(({ command }) => / serve /.test(command));
  const isLeader = ({ pid }: { pid: number }) => descendantsOf(pid).some(({ command }) => / live-ingest/.test(command));
  const [other] = processes().filter((one) => !isLeader(one));
  process.kill(other?.pid as number, "SIGKILL");
  const serving = async () =>
    new Set((await call("GET", "/metrics", { admin: server.admin })).text.match(/(?<=process=")\d+/g)).size;
  // The system resets connections of the killed process, those that it has not accepted yet too.
  await until("it has exited", async () => (await serving().catch(() => 3)) === 2);
  await until("another one serves in its place", async () => (await serving()) === 3);
  await until("it has the stream too", async () => (await answers()).every((status) => status === 200));
  const later = await until("all of them have later segments", async () => {
    const now = await numbers();
    return Math.min(...now) > Math.max(...seen) ? now : null;
  });
  expect(Math.max(...later) - Math.min(...later)).toBeLessThanOrEqual(1);

  const clips = await Promise.all(
    Array.from({ length: 6 }, () =>
      as({ key, headers: { connection: "close" } }).createLiveClip(id, { last_seconds: 2 }),
    ),
  );
  expect(clips.map(({ status }) => status)).toEqual(clips.map(() => 201));
  publishing.child.kill("SIGINT");
  await until("the stream has ended everywhere", async () => (await answers()).every((status) => status === 404));
  await until("the recording is an asset", async () =>
    (await as(key).listAssets()).body.some(({ title }: { title: string }) => /^stage, /.test(title)),
  );
  await stopCleanly(server);
});
