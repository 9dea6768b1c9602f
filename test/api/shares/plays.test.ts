import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";
import { shareOf, type Viewer, viewer } from "#test/support/shares.ts";

const HOUR = 3_600_000;
let app: TestApp;
let key: string;
let asset: { id: number; external_id: string };
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  ({ asset } = await readyAsset(app, key));
});
const share = (fields?: Record<string, unknown>) => shareOf(app, key, asset.id, fields);
const at = ({ id }: { id: number }) => `/api/v1/assets/${asset.id}/shares/${id}`;
const playsOf = async (made: { id: number }) => (await app.call("GET", at(made), { key })).body.play_count;
const opened = async (url: string) => {
  const one = viewer(app);
  expect((await one.open(url)).status).toBe(200);
  return one;
};
const segmentsOf = async (one: Viewer) => {
  const lines = (text: string) => text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const master = `http://vodbox.test/media/${asset.external_id}/master.m3u8?token=${one.token()}`;
  const variant = new URL(lines((await app.call("GET", master)).text)[0] as string, master).href;
  const text = (await app.call("GET", variant)).text;
  return [variant, ...lines(text).map((line) => new URL(line, variant).href)];
};

describe("a play", () => {
  test("counts at the first request for media, once, whatever else is requested", async () => {
    const made = await share();
    const one = await opened(made.url);
    for (const file of ["thumbnail.jpg", "storyboard.vtt"]) expect((await one.media(asset, file)).status).toBe(200);
    await app.call("GET", `/embed/${asset.external_id}/player.json?token=${one.token()}`);
    expect(await playsOf(made)).toBe(0);
    for (const url of await segmentsOf(one)) expect((await app.call("GET", url)).status, url).toBe(200);
    await one.media(asset, "manifest.mpd");
    expect(await playsOf(made)).toBe(1);
    const two = await opened(made.embed_url);
    await two.media(asset);
    expect(await playsOf(made)).toBe(2);
  });

  test("continues after a reload within an hour, and is another one later", async () => {
    const made = await share();
    const one = await opened(made.url);
    await one.media(asset);
    for (let n = 0; n < 3; n++) {
      app.advance(HOUR / 4);
      await one.open(made.url);
      expect((await one.media(asset)).status).toBe(200);
    }
    expect(await playsOf(made)).toBe(1);
    app.advance(HOUR / 4 + 5000);
    await one.open(made.url);
    expect((await one.media(asset)).status).toBe(200);
    expect(await playsOf(made)).toBe(2);
    // A token counts once too: a viewer of a long film is not counted again.
    await one.media(asset);
    expect(await playsOf(made)).toBe(2);
  });

  test("is counted for a public asset as well", async () => {
    const open = await readyAsset(app, key, { playback_policy: "public" });
    const made = await shareOf(app, key, open.asset.id, { max_plays: 1 });
    const one = await opened(made.url);
    const two = await opened(made.url);
    const player = await app.call("GET", `/embed/${open.asset.external_id}/player.json?token=${one.token()}`);
    expect((await app.call("GET", player.body.hls_url)).status).toBe(200);
    expectError(await two.media(open.asset), 403, "playback_token_invalid");
    expect((await viewer(app).open(made.url)).status).toBe(410);
    // It needs no token, and ignores others.
    expect((await app.call("GET", `/media/${open.asset.external_id}/master.m3u8?token=x`)).status).toBe(200);
  });
});

describe("a share with a number of plays", () => {
  test("ends for others, while its viewers continue", async () => {
    const made = await share({ max_plays: 1 });
    const one = await opened(made.url);
    const late = await opened(made.url);
    await one.media(asset);
    expectError(await late.media(asset), 403, "playback_token_invalid");
    expectError(await late.media(asset, "thumbnail.jpg"), 403, "playback_token_invalid");
    for (const url of [made.url, made.embed_url]) {
      expect((await viewer(app).open(url)).status).toBe(410);
      expect((await late.open(url)).status).toBe(410);
    }
    expect((await app.call("GET", at(made), { key })).body).toMatchObject({ status: "played_out", play_count: 1 });
    expect((await one.open(made.url)).status).toBe(200);
    for (const url of await segmentsOf(one)) expect((await app.call("GET", url)).status).toBe(200);
    app.advance(HOUR + 5000);
    expect((await one.open(made.url)).status).toBe(410);
    await app.call("PATCH", at(made), { key, body: { max_plays: 2 } });
    expect((await one.open(made.url)).status).toBe(200);
    expect((await one.media(asset)).status).toBe(200);
    expect(await playsOf(made)).toBe(2);
  });

  test("admits exactly as many of fifty concurrent viewers", async () => {
    for (const maxPlays of [1, 7]) {
      const made = await share({ max_plays: maxPlays });
      const viewers = await Promise.all(Array.from({ length: 50 }, () => opened(made.url)));
      const requests = viewers.flatMap((one) => [one, one, one]);
      const answers = await Promise.all(requests.map((one) => one.media(asset)));
      const admitted = requests.filter((_, index) => answers[index]?.status === 200);
      expect(new Set(admitted).size).toBe(maxPlays);
      expect(admitted).toHaveLength(3 * maxPlays);
      expect(answers.filter(({ status }) => status === 403)).toHaveLength(150 - 3 * maxPlays);
      expect(await playsOf(made)).toBe(maxPlays);
    }
  });
});

describe("media of a share", () => {
  test("are refused once it is deleted, by every URL that its viewers have, and must be asked for again", async () => {
    const made = await share();
    const one = await opened(made.url);
    const urls = [
      ...(await segmentsOf(one)),
      `/media/${asset.external_id}/master.m3u8?token=${one.token()}`,
      `/media/${asset.external_id}/thumbnail.jpg?token=${one.token()}`,
      `/embed/${asset.external_id}/player.json?token=${one.token()}`,
    ];
    for (const url of urls) {
      const answer = await app.call("GET", url);
      expect(answer.status, url).toBe(200);
      if (url.includes("/media/")) expect(answer.headers.get("cache-control"), url).toBe("private, no-cache");
    }
    await app.call("DELETE", at(made), { key });
    for (const url of urls) expectError(await app.call("GET", url), 403, "playback_token_invalid", url);
    expect((await app.call("GET", `/watch/${asset.external_id}?token=${one.token()}`)).status).toBe(403);
    // Those of the asset itself are not concerned.
    const { hls_url } = (await app.as(key).getPlayback(asset.id)).body;
    expect((await app.call("GET", hls_url)).status).toBe(200);
  });

  test("need a token of this server that says so", async () => {
    const made = await share();
    const one = await opened(made.url);
    const [head = "", claims = "", signature = ""] = one.token().split(".");
    const said = JSON.parse(Buffer.from(claims, "base64url").toString());
    expect(said).toMatchObject({ sub: asset.external_id, shr: made.id, vwr: expect.any(String), pwd: "" });
    const forged = Buffer.from(JSON.stringify({ ...said, vwr: "someone-else" })).toString("base64url");
    const answer = await app.call(
      "GET",
      `/media/${asset.external_id}/master.m3u8?token=${head}.${forged}.${signature}`,
    );
    expectError(answer, 403, "playback_token_invalid");
    expect(await playsOf(made)).toBe(0);
  });
});

test("plays are forgotten after a day, and deleted shares after a year; counts stay", async () => {
  const made = await share();
  const gone = await share();
  await (await opened(made.url)).media(asset);
  await app.call("DELETE", at(gone), { key });
  const rows = (table: string) => app.opened.app.db.all(`SELECT * FROM ${table}`);
  app.advance(23 * HOUR);
  await app.runTask("prune-shares");
  expect(await rows("share_plays")).toHaveLength(1);
  app.advance(2 * HOUR);
  await app.runTask("prune-shares");
  expect(await rows("share_plays")).toEqual([]);
  expect(await rows("shares")).toHaveLength(2);
  app.advance(366 * 24 * HOUR);
  await app.runTask("prune-shares");
  expect(await rows("shares")).toHaveLength(1);
  expect(await playsOf(made)).toBe(1);
});

test("strangers cannot store any number of plays", async () => {
  const limited = await testApp({ rate_limit_beacon: "3/60" });
  const ownKey = await limited.key((await limited.tenant()).id);
  const own = (await readyAsset(limited, ownKey)).asset;
  const made = await shareOf(limited, ownKey, own.id, {});
  const statuses: number[] = [];
  for (let n = 0; n < 5; n++) {
    const one = viewer(limited);
    await one.open(made.url);
    statuses.push((await one.media(own)).status);
    // What was counted plays on.
    if (n < 3) expect((await one.media(own)).status).toBe(200);
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429]);
  const { body } = await limited.as(ownKey).getShare(own.id, made.id);
  expect(body.play_count).toBe(3);
  await limited.close();
});
