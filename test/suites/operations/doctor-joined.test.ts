import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { workOnce } from "#test/support/clip-worker.ts";
import { clipOf, downloaded, encodedAgain, film, filmAsset, frameHashes } from "#test/support/clips.ts";
import { checkup } from "#test/support/doctor.ts";
import { nightly } from "#test/support/nightly.ts";

let app: TestApp;
let key: string;
let files: Awaited<ReturnType<typeof film>>;

beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60", rate_limit_pictures: "10000/60" });
  key = await app.key((await app.tenant()).id);
  files = await film();
});

const shown = async (id: number) => (await app.as(key).getAsset(id)).body;
const types = async () => (await app.newEvents()).map(({ type }) => type);
const lose = async (key: string) => {
  expect(await app.opened.app.objects?.head(key)).not.toBeNull();
  await app.opened.app.objects?.delete(key);
};
const remove = async (id: number) => expect((await app.as(key).deleteAsset(id)).status).toBe(204);
const hashesOf = async (id: number) => {
  const { body } = await app.as(key).getPlayback(id);
  return frameHashes(await downloaded(app, body.hls_url));
};

/** An asset that was joined from a film and a clip of it. */
async function joinedAsset() {
  const part = await filmAsset(app, key, files, { playback_policy: "public" });
  const clip = await clipOf(app, key, part.id, 4, 12);
  const { body, text } = await app.as(key).joinAssets({ asset_ids: [part.id, clip.id] });
  expect(await workOnce(app), text).toBe("completed");
  await app.newEvents();
  return { part, clip, whole: await shown(body.id) };
}

test("a joined asset whose manifest is lost is joined again from its parts, as they are now", async () => {
  const { part, clip, whole } = await joinedAsset();
  const before = await hashesOf(whole.id);
  // The media of the part are under another prefix.
  await encodedAgain(app, key, part.id, files);
  await app.newEvents();
  await lose(whole.manifest_path);
  const looked = await checkup(app);
  expect(looked.of("missing")).toMatchObject({ ok: false, fixed: 0 });
  expect(looked.of("missing").detail).toContain(
    `asset ${whole.id}: ${whole.manifest_path} (manifest; doctor --fix joins its parts again)`,
  );
  expect(await types()).toEqual([]);

  const fixed = await checkup(app, { fix: true });
  expect(fixed.of("missing")).toMatchObject({ ok: true, fixed: 1 });
  expect(fixed.of("missing").detail).toContain("1 assets are joined again from their parts");
  expect(await types()).toEqual(["video.job.queued"]);
  expect(await shown(whole.id)).toMatchObject({ playback_status: "processing" });
  expect(await workOnce(app)).toBe("completed");
  const again = await shown(whole.id);
  expect(again).toMatchObject({ playback_status: "ready", error: null, duration_seconds: whole.duration_seconds });
  expect(again.manifest_path).not.toBe(whole.manifest_path);
  expect(await hashesOf(whole.id)).toEqual(before);
  expect((await checkup(app)).of("missing").ok).toBe(true);
  expect(await shown(clip.id)).toMatchObject({ playback_status: "ready" });
});

nightly("one whose thumbnail is lost plays on while it is joined again", async () => {
  const { whole } = await joinedAsset();
  await lose(whole.thumbnail_path);
  expect((await checkup(app, { fix: true })).of("missing")).toMatchObject({ ok: true, fixed: 1 });
  expect(await shown(whole.id)).toMatchObject({ playback_status: "ready", stage: "queued" });
  expect(await workOnce(app)).toBe("completed");
  const again = await shown(whole.id);
  expect(await app.opened.app.objects?.head(again.thumbnail_path)).not.toBeNull();
});

nightly("one of which a part is being encoded waits for it", async () => {
  const { part, whole } = await joinedAsset();
  await lose((await shown(part.id)).manifest_path);
  await checkup(app, { fix: true });
  expect(await shown(part.id)).toMatchObject({ playback_status: "processing" });
  await lose(whole.manifest_path);
  const fixed = await checkup(app, { fix: true });
  expect(fixed.of("missing")).toMatchObject({ ok: false, fixed: 0 });
  expect(fixed.of("missing").detail).toContain(`its part, asset ${part.id}, is being encoded`);
  expect(await shown(whole.id)).toMatchObject({ playback_status: "ready" });
});

nightly("one whose parts are gone is errored, and says what to do", async () => {
  const { part, clip, whole } = await joinedAsset();
  await remove(clip.id);
  await remove(part.id);
  await lose(whole.manifest_path);
  expect((await checkup(app)).of("missing").detail).toContain(
    `of its parts assets ${part.id}, ${clip.id} are not playable any more`,
  );
  const fixed = await checkup(app, { fix: true });
  expect(fixed.of("missing")).toMatchObject({ ok: true, fixed: 1 });
  const errored = await shown(whole.id);
  expect(errored).toMatchObject({ playback_status: "errored", error: { code: "media_lost" } });
  expect(errored.error.message).toMatch(/restore its files from a backup/);
});

const storeOf = () => app.opened.app.objects as NonNullable<TestApp["opened"]["app"]["objects"]>;
/** The key of a segment of an asset. */
async function segmentOf({ manifest_path }: { manifest_path: string }, name: string): Promise<string> {
  const { objects } = await storeOf().list(manifest_path.replace(/[^/]+$/, ""), { limit: 1000 });
  return (objects.find(({ key }) => key.endsWith(name)) as { key: string }).key;
}
/** Cuts off the last byte of a segment, as a copy does that was interrupted. */
async function truncate(key: string): Promise<void> {
  const read = await storeOf().get(key);
  const bytes = Buffer.concat(await Array.fromAsync(read?.body as AsyncIterable<Uint8Array>));
  await storeOf().put(key, bytes.subarray(0, -1));
}

nightly("one of which a segment is truncated or missing is joined again, and plays on meanwhile", async () => {
  const { whole } = await joinedAsset();
  const before = await hashesOf(whole.id);
  expect((await checkup(app)).of("damaged")).toMatchObject({ ok: true, fixed: 0 });
  await truncate(await segmentOf(whole, "00002.m4s"));
  const looked = await checkup(app);
  expect(looked.of("damaged")).toMatchObject({ ok: false, fixed: 0 });
  expect(looked.of("damaged").detail).toMatch(
    new RegExp(`asset ${whole.id}: \\d+ bytes instead of \\d+ \\(media; doctor --fix joins its parts again\\)`),
  );
  expect(await types()).toEqual([]);

  const fixed = await checkup(app, { fix: true });
  expect(fixed.of("damaged")).toMatchObject({ ok: true, fixed: 1 });
  expect(fixed.of("damaged").detail).toContain("1 assets are joined again from their parts");
  expect(await types()).toEqual(["video.job.queued"]);
  expect(await shown(whole.id)).toMatchObject({ playback_status: "ready", stage: "queued" });
  expect((await checkup(app, { fix: true })).of("damaged")).toMatchObject({ ok: true, fixed: 0 });
  expect(await workOnce(app)).toBe("completed");
  const again = await shown(whole.id);
  expect(again.manifest_path).not.toBe(whole.manifest_path);
  expect(await hashesOf(whole.id)).toEqual(before);
  expect((await checkup(app)).of("damaged")).toMatchObject({ ok: true, fixed: 0 });

  await lose(await segmentOf(again, "00003.m4s"));
  expect((await checkup(app, { fix: true })).of("damaged")).toMatchObject({ ok: true, fixed: 1 });
  expect(await workOnce(app)).toBe("completed");
  expect(await hashesOf(whole.id)).toEqual(before);
});

nightly("one of which a part is damaged too waits for the part", async () => {
  const { part, whole } = await joinedAsset();
  for (const one of [await shown(part.id), whole]) await truncate(await segmentOf(one, "00002.m4s"));
  const fixed = await checkup(app, { fix: true });
  expect(fixed.of("damaged")).toMatchObject({ ok: false, fixed: 0 });
  expect(fixed.of("damaged").detail).toContain(`its part, asset ${part.id}, is damaged too`);
  expect(await types()).toEqual([]);
});

nightly("a retry joins the media that a part has now, after it was encoded again", async () => {
  const part = await filmAsset(app, key, files, { playback_policy: "public" });
  const { body } = await app.as(key).joinAssets({ asset_ids: [part.id, part.id] });
  await encodedAgain(app, key, part.id, files);
  app.advance(7_200_000);
  await app.runTask("sweep-objects");
  await expect(workOnce(app)).rejects.toThrow(/failed/);
  expect(await shown(body.id)).toMatchObject({ playback_status: "errored", error: { code: "join_not_possible" } });
  expect((await app.as(key).retryAsset(body.id)).status).toBe(200);
  expect(await workOnce(app)).toBe("completed");
  expect(await shown(body.id)).toMatchObject({ playback_status: "ready", error: null });
});
