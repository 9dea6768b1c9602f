import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { readyAsset } from "#test/support/flow.ts";
import { insertTracks } from "#test/support/tracks.ts";

let app: TestApp;
let key: string;
beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  return app.close;
});

describe("the chapters that anyone receives", () => {
  const chaptersOf = async (id: number) => (await app.call("GET", `/embed/${id}/player.json`)).body.chapters;
  const many = (count: number, payload: Record<string, unknown>) =>
    Array.from({ length: count }, (_, index) => ({ start_ms: index, payload }));

  test("are all those of a track of the largest size", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const track = { kind: "chapter", cues: many(500, { title: "t", text: "x".repeat(340) }) };
    const made = await app.as(key).setTrack(asset.id, track);
    expect(made.status, made.text).toBe(201);
    expect(await chaptersOf(asset.id)).toHaveLength(500);
  });

  test.each([
    ["number", 100, many(500, {}), 1000],
    ["bytes", 10, many(100, { title: "t", text: "x".repeat(700) }), 300],
    ["number of tracks", 150, many(1, { title: "t" }), 100],
  ])("have a limited %s", async (_, count, cuesOfEach, expected) => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public", title: "VR" });
    await insertTracks(app, asset.id, { count: count, kind: "chapter", cues: cuesOfEach });
    const vr = await app.call("GET", `/api/v1/assets/${asset.id}/vr_manifest.json`, { key });
    expect(vr.body.timeStamps).toHaveLength(expected);
    // The last one of chapters with the same time has a duration.
    expect(await chaptersOf(asset.id)).toHaveLength(cuesOfEach.length);
  });
});
