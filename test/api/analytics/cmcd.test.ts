import { beforeEach, expect, test } from "vitest";
import { parseCmcd } from "#features/analytics/cmcd/parse.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";

test.each([
  ["", {}],
  ['br=3200,bs,d=4004,ot=v,sid="a,b",su', { br: 3200, bs: true, d: 4004, ot: "v", sid: "a,b", su: true }],
  ['sid="say \\"hi\\""', { sid: 'say "hi"' }],
  ["bl=(21300;v 1500;a),br=(128;a)", { bl: 21_300, br: 128 }],
  ["pr=1.08,com.example-key=?1,bg=?0", { pr: 1.08, "com.example-key": true }],
  ['Br=1,=2,,sid="open,d=1', {}],
  ["br=1e9,d=-5,mtp=99999999999999999999,ot=v;x", { d: -5, ot: undefined }],
])("reads %j", (text, expected) => {
  expect(Object.fromEntries(parseCmcd(text))).toEqual(
    Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== undefined)),
  );
});

let app: TestApp;
let key: string;
let asset: { id: number; external_id: string };
let segment: string;
beforeEach(async () => {
  app = await testApp({ rate_limit_beacon: "100000/1" });
  app.stopClock();
  key = await app.key((await app.tenant()).id);
  ({ asset } = await readyAsset(app, key, { playback_policy: "public" }));
  const master = await app.call("GET", `/media/${asset.external_id}/master.m3u8`);
  const playlist = /^[^#\s].*$/m.exec(master.text)?.[0] ?? "";
  segment = `/media/${asset.external_id}/${playlist.replace("playlist.m3u8", "1.m4s")}`;
});
const load = async (report: string, url = segment, headers: Record<string, string> = {}) => {
  const answer = await app.call("GET", report === "" ? url : `${url}?CMCD=${encodeURIComponent(report)}`, { headers });
  expect(answer.status, answer.text).toBe(200);
  return answer;
};
/** What a player that loads `count` segments of 4 s says, in real time. */
async function watch(count: number, extra = "", sid = "third-party") {
  for (let index = 0; index < count; index++) {
    await load(`br=1200,d=4000,ot=v,sid="${sid}"${extra}`);
    app.advance(4000);
  }
}
const report = () => app.runTask("report-cmcd");
const analytics = async () => (await app.as(key).getAssetAnalytics(asset.id, { details: "true" })).body;
const played = async () => {
  const { play_count, watch_time_seconds } = await analytics();
  return [play_count, watch_time_seconds];
};

test("a player without beacons is a view, with its watch time and stalls", async () => {
  await load('ot=m,sid="third-party"', `/media/${asset.external_id}/master.m3u8`);
  app.advance(500);
  await load('br=600,d=4000,ot=v,sid="third-party",su');
  app.advance(1000);
  await watch(5);
  await report();
  expect(await played()).toEqual([1, expect.closeTo(21.5, 1)]);
  await load('bl=1000,br=1200,d=4000,ot=v,sid="third-party"');
  app.advance(3000);
  await load('bl=0,br=2400,bs,d=4000,ot=v,sid="third-party"');
  app.advance(31_000);
  await report();
  await report();
  const body = await analytics();
  expect(body.play_count).toBe(1);
  // Two seconds of 32: three without a request, and one of them was ahead.
  expect(body.devices[0].rebuffer_ratio).toBeCloseTo(2 / 34, 3);
  expect((await played())[1]).toBeCloseTo(32, 0);
});

test("header mode counts as well, and neither changes what is cached", async () => {
  const plain = await load("");
  const withQuery = await load('d=4000,ot=v,sid="one"');
  const headers = { "cmcd-session": 'sid="two"', "cmcd-object": "d=4000,ot=v", "cmcd-request": "su" };
  const withHeaders = await load("", segment, headers);
  for (const answer of [withQuery, withHeaders])
    for (const name of ["etag", "cache-control", "content-type"])
      expect(answer.headers.get(name)).toBe(plain.headers.get(name));
  app.advance(40_000);
  await report();
  expect((await analytics()).play_count).toBe(2);
});

test("a player that sends beacons too is counted once, and our own player by its beacons alone", async () => {
  const beacon = (fields: object) =>
    app.as().unchecked.recordPlaybackEvents({ asset_id: asset.id, session_id: "both", ...fields });
  await watch(1, "", "both");
  await beacon({ event: "play" });
  await watch(3, "", "both");
  await beacon({ event: "heartbeat", watched_seconds: 12 });
  await watch(3, "", "vodbox.own");
  app.advance(60_000);
  await report();
  expect(await played()).toEqual([1, 12]);
});

test("what is hostile or not playback counts nothing", async () => {
  const long = "x".repeat(5000);
  for (const text of ["", ",,,", "sid", `sid="${long}"`, 'sid="a"', 'd=4000,ot=m,sid="a"', 'd=4000,ot=v,pr=0,sid="a"'])
    await load(text);
  await load(`${"a,".repeat(2100)}sid="late",d=4000,ot=v`);
  await load("", segment, { "cmcd-session": "\t\u00e4,;=" });
  app.advance(60_000);
  await report();
  expect((await analytics()).play_count).toBe(0);
  const huge = await load('d=999999999999,ot=v,sid="huge"');
  expect(huge.status).toBe(200);
  app.advance(3_600_000);
  await report();
  expect(await played()).toEqual([1, 60]);
});

test("reports in event mode are a view", async () => {
  const start = app.opened.app.clock.now();
  const lines = (...all: [seconds: number, rest: string][]) =>
    all.map(([s, rest]) => `cid="${asset.external_id}",sid="events",ts=${start + s * 1000},v=2,${rest}`).join("\n");
  const send = (body: string, type = "application/cmcd") =>
    app.call("POST", "/api/v1/cmcd", { raw: body, headers: { "content-type": type } });
  app.advance(60_000);
  const all = lines(
    [0, "e=ps,sta=s"],
    [1, "e=ps,sta=p,msd=800"],
    [11, "e=t,pt=10000"],
    [12, "e=ps,sta=r"],
    [14, "e=ps,sta=p"],
    [20, "e=bc,br=(2400;v)"],
    [21, "e=ps,sta=e,pt=20000"],
    [22, "e=h"],
  );
  expect((await send(all)).status).toBe(204);
  // Sent again, because the response was lost.
  await send(all);
  const body = await analytics();
  expect([body.play_count, body.devices[0]]).toEqual([
    1,
    expect.objectContaining({ watch_time_seconds: 18, rebuffer_ratio: 0.1 }),
  ]);
  for (const bad of [
    "",
    "\n\n",
    "garbage",
    'e=ps,sta=p,sid="x",cid="vid_unknown"',
    'e=ps,sta=p,cid="live/none",sid="x"',
  ])
    expect((await send(bad)).status).toBe(204);
  expectError(await send(all, "image/png"), 415, "unsupported_media_type");
  expectError(await send("x".repeat(70_000)), 413, "payload_too_large");
  expect((await analytics()).play_count).toBe(1);
});

test("a player that uses both modes is counted once, by the one that came first", async () => {
  const send = (rest: string) => {
    const body = `cid="${asset.external_id}",sid="twice",ts=${app.opened.app.clock.now()},v=2,${rest}`;
    return app.call("POST", "/api/v1/cmcd", { raw: body, headers: { "content-type": "application/cmcd" } });
  };
  await watch(5, "", "twice");
  await report();
  await send("e=ps,sta=p");
  await watch(5, "", "twice");
  await send("e=t,pt=20000");
  app.advance(60_000);
  await report();
  expect(await played()).toEqual([1, 40]);
  // A session that has ended is forgotten, and begins again.
  const events = async () => (await analytics()).play_count;
  expect(await events()).toBe(1);
});

test("new sessions of one address are bounded; those that play continue", async () => {
  const first = () => load('br=1200,d=4000,ot=v,sid="first"');
  await first();
  for (let index = 0; index < 100; index++) await load(`d=4000,ot=v,sid="made up ${index}"`);
  app.advance(20_000);
  await first();
  app.advance(60_000);
  await report();
  expect((await analytics()).play_count).toBe(60);
});
