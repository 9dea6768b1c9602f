import { expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { client } from "#test/support/client.ts";
import { onPort } from "#test/support/clip-worker.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";
import { longManifests, longSubtitle } from "#test/support/long-manifests.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { typedClient } from "#test/support/typed-client.ts";

const SHORT = 180;
const LONG = 3 * 3600;
const ROUNDS = 10;
/** No segment is read, and only the part of each manifest around the clip is parsed; it has to be found in the whole. */
const MAX_RATIO = 3;

/** An asset with subtitles and chapters. */
async function assetOf(app: TestApp, key: string, seconds: number): Promise<number> {
  await uploaded(app, key, { playback_policy: "public" });
  const { body: contract } = await next(app);
  const { prefix, manifest_path, dash_manifest_path, storyboard_path } = contract.outputs;
  const fixed: Record<string, string> = {
    "master.m3u8": manifest_path,
    "manifest.mpd": dash_manifest_path,
    "storyboard.vtt": storyboard_path,
  };
  const files = Object.entries(longManifests(seconds)).map(([name, text]) => [fixed[name] ?? prefix + name, text]);
  const paths = await putArtifacts(app, contract, Object.fromEntries(files));
  const media = { duration_seconds: seconds, width: 1920, height: 1080, frame_rate: 30, renditions: [] };
  expect((await callback(app, contract, "complete", { ...paths, media })).status).toBe(200);
  const id = contract.job.asset_id;
  await subtitled(app, key, id, {}, longSubtitle(seconds));
  const cues = Array.from({ length: 60 }, (_, at) => ({
    start_ms: (at * seconds * 1000) / 60,
    payload: { title: `Chapter ${at}` },
  }));
  const chapters = { kind: "chapter", name: "chapters", cues };
  expect((await app.as(key).setTrack(id, chapters)).status).toBe(201);
  return id;
}

test("a clip of an asset of three hours takes little more than one of three minutes", async () => {
  const app = await testApp({ rate_limit_uploads: "10000/60" });
  const key = await app.key((await app.tenant()).id);
  const ids = { [SHORT]: await assetOf(app, key, SHORT), [LONG]: await assetOf(app, key, LONG) };
  await using server = await onPort(app);
  const call = client(server.base);
  const clipMs = async (seconds: number, round: number) => {
    const start_seconds = 1 + (round * (seconds - 65)) / ROUNDS;
    const before = process.cpuUsage();
    const body = { start_seconds, end_seconds: start_seconds + 60 };
    const answer = await typedClient(call)(key).createClip(ids[seconds], body);
    const { user, system } = process.cpuUsage(before);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({ playback_status: "ready" });
    // Processor time of client and server together: a machine that runs tests has other work, which only adds to it.
    return (user + system) / 1000;
  };
  const [short, long]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    short.push(await clipMs(SHORT, round));
    long.push(await clipMs(LONG, round));
  }
  expect(Math.min(...long) / Math.min(...short), `${short.map(Math.round)}; ${long.map(Math.round)}`).toBeLessThan(
    MAX_RATIO,
  );
});
