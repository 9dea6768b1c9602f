import { expect, test } from "vitest";
import { readyAsset } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { freshly } from "#test/support/fresh.ts";
import { startServer } from "#test/support/process.ts";
import { shareOf, viewer } from "#test/support/shares.ts";
import { steppedClock } from "#test/support/stepped-clock.ts";
import { typedClient } from "#test/support/typed-client.ts";

const VIEWERS = 50;
const clock = steppedClock();
// The stepped clock is a module that is loaded first, which the executable does not do.
const start = (dataDir: string, args = ["--processes", "3"]) =>
  startServer(dataDir, { args, env: clock.env, fromSources: true });

test("several processes admit exactly as many viewers as a share allows, also after a kill, and end it at once", async () => {
  const dataDir = emptyFolder();
  const server = await start(dataDir);
  // Each request on a connection of its own, so that every process answers some.
  const call = freshly(server.base);
  const { admin } = server;
  const tenant = await typedClient(call)({ admin }).createTenant({ name: "T", slug: "t" });
  const key = (
    await typedClient(call)({ admin }).createApiKey({
      tenant_id: tenant.body.id,
      scopes: ["assets:write", "playback:read"],
    })
  ).body.token;
  const { asset } = await readyAsset({ call, worker: server.worker }, key);
  const at = `/api/v1/assets/${asset.id}/shares`;
  const opened = async (url: string) => {
    const one = viewer({ call });
    expect((await one.open(url)).status).toBe(200);
    return one;
  };

  const free = await shareOf({ call }, key, asset.id, { max_plays: 3 });
  const all = await Promise.all(Array.from({ length: VIEWERS }, () => opened(free.url)));
  const answers = await Promise.all(all.map((one) => one.media(asset)));
  const admitted = all.filter((_, index) => answers[index]?.status === 200);
  expect(admitted).toHaveLength(3);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 403]));
  expect((await call("GET", `${at}/${free.id}`, { key })).body).toMatchObject({ play_count: 3, status: "played_out" });

  server.child.kill("SIGKILL");
  await server.ended;
  const again = await start(dataDir);
  const callAgain = freshly(again.base);
  const mediaOf = (token: string) =>
    callAgain("GET", `/media/${asset.external_id}/master.m3u8?token=${token}`).then(({ status }) => status);
  for (const one of all) expect(await mediaOf(one.token())).toBe(admitted.includes(one) ? 200 : 403);
  const path = new URL(free.url).pathname;
  const shown = async () =>
    new Set((await Promise.all(Array.from({ length: 12 }, () => callAgain("GET", path)))).map(({ status }) => status));
  expect([...(await shown())]).toEqual([410]);

  // What ends one through one process, or at a time, ends it in all of them.
  const last = await shareOf({ call: callAgain }, key, asset.id);
  const expiring = await shareOf({ call: callAgain }, key, asset.id, {
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
  });
  for (const [share, end] of [
    [last, () => callAgain("DELETE", `${at}/${last.id}`, { key })],
    [expiring, async () => clock.setTo(3_601_000)],
  ] as const) {
    const one = viewer({ call: callAgain });
    await one.open(share.url);
    const everywhere = async () => [
      ...new Set(await Promise.all(Array.from({ length: 12 }, () => mediaOf(one.token())))),
    ];
    expect(await everywhere()).toEqual([200]);
    await end();
    await expect.poll(everywhere, { timeout: 30_000 }).toEqual([403]);
    expect((await one.open(share.url)).status).toBe(410);
  }
});
