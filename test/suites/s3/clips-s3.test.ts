import { afterAll, beforeAll, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { workOnce } from "#test/support/clip-worker.ts";
import { clipOf, createClip, downloaded, FPS, film, filmAsset, frameHashes, SECONDS } from "#test/support/clips.ts";
import { newBucket, type S3Server, s3Server } from "#test/support/s3-server.ts";

let s3: S3Server;
let files: Awaited<ReturnType<typeof film>>;
const open: TestApp[] = [];
beforeAll(async () => {
  s3 = await s3Server();
  files = await film();
});
afterAll(() => Promise.all(open.map((app) => app.close())));

async function clipped(s3_delivery: string) {
  const bucket = newBucket("clips");
  await s3.bucket(bucket);
  const app = await testApp({
    rate_limit_uploads: "10000/60",
    storage: "s3",
    s3_delivery,
    s3_endpoint: s3.endpoint,
    s3_bucket: bucket,
    s3_region: s3.region,
    s3_access_key_id: s3.accessKeyId,
    s3_secret_access_key: s3.secretAccessKey,
  });
  open.push(app);
  const key = await app.key((await app.tenant()).id);
  const parent = await filmAsset(app, key, files, { playback_policy: "public" });
  const clip = await clipOf(app, key, parent.id, 4, 12);
  const master = (await app.call("GET", `/media/${clip.external_id}/master.m3u8`)).text;
  const playlist = `/media/${clip.external_id}/${/^[^#].*$/m.exec(master)?.[0]}`;
  return { app, key, parent, clip, playlist };
}
/** The second segment of the rendition of a playlist, as the worker wrote it. */
const expected = (playlist: string) => files[`${playlist.split("/").at(-2)}/00002.m4s`] as Uint8Array;
const bytesOf = async (url: string) => new Uint8Array(await (await fetch(url)).arrayBuffer());

test.each(rows(["redirect", "rewrite", "proxy"], 1))(
  "%s: segments of a clip come from its parent, also when that is deleted",
  async (delivery) => {
    const { app, key, parent, clip, playlist } = await clipped(delivery);
    const segment = playlist.replace(/[^/]*$/, "00002.m4s");
    const segments = async () => {
      if (delivery === "rewrite") {
        const text = (await app.call("GET", playlist)).text;
        const urls = [...text.matchAll(/^http.*$/gm)].map(([url]) => url);
        expect(urls).toHaveLength(2);
        expect(text).toMatch(/EXT-X-MAP:URI="http/);
        return bytesOf(urls[0] as string);
      }
      const answer = await app.opened.server.fetch(new Request(`http://vodbox.test${segment}`));
      expect(answer.status).toBe(delivery === "proxy" ? 200 : 302);
      const location = answer.headers.get("location");
      return location ? bytesOf(location) : new Uint8Array(await answer.arrayBuffer());
    };
    expect(Buffer.compare(await segments(), expected(playlist))).toBe(0);
    for (const name of ["00001.m4s", "00004.m4s"])
      expect((await app.call("GET", playlist.replace(/[^/]*$/, name))).status, name).toBe(404);
    await app.as(key).deleteAsset(parent.id);
    app.advance(3_600_000);
    await app.runTask("sweep-objects");
    expect(Buffer.compare(await segments(), expected(playlist))).toBe(0);
    await app.as(key).deleteAsset(clip.id);
    app.advance(3_600_000);
    await app.runTask("sweep-objects");
    expect((await app.opened.app.objects?.list("tenants/"))?.objects).toEqual([]);
  },
);

test("an exact clip is cut from and to the bucket, and trimmed", async () => {
  const { app, key, parent } = await clipped("proxy");
  const range = { start_seconds: 3, end_seconds: 9 };
  const { body: clip } = await createClip(app, key, parent.id, { ...range, mode: "exact" });
  expect(await workOnce(app)).toBe("completed");
  await app.as(key).deleteAsset(parent.id);
  const trimmed = await app.call("POST", `/api/v1/assets/${clip.id}/trim`, {
    key,
    body: { start_seconds: 0, end_seconds: 5 },
  });
  expect([trimmed.status, trimmed.body.duration_seconds]).toEqual([200, 5]);
  app.advance(3_600_000);
  await app.runTask("sweep-objects");
  const master = (await app.call("GET", `/media/${clip.external_id}/master.m3u8`)).text;
  const playlist = `/media/${clip.external_id}/${/^[^#].*$/m.exec(master)?.[0]}`;
  // The first one, of a second, is its own; the other is the parent's.
  const statuses = ["00001.m4s", "00002.m4s", "00003.m4s"].map(async (name) => {
    const url = `http://vodbox.test${playlist.replace(/[^/]*$/, name)}`;
    return (await app.opened.server.fetch(new Request(url))).status;
  });
  expect(await Promise.all(statuses)).toEqual([200, 200, 404]);
  const body = { start_seconds: 0.2, end_seconds: 4.2, mode: "exact" };
  expect((await app.as(key).trimAsset(clip.id, body)).status).toBe(202);
  expect(await workOnce(app)).toBe("completed");
  const { hls_url } = (await app.as(key).getPlayback(clip.id)).body;
  expect(await frameHashes(await downloaded(app, hls_url))).toHaveLength(4 * FPS);
  // The media that it replaced, of which one segment is the deleted parent's, are served for another hour.
  const old = async (name: string) => (await app.call("GET", playlist.replace(/[^/]*$/, name))).status;
  await app.runTask("sweep-objects");
  expect([await old("00001.m4s"), await old("00002.m4s")]).toEqual([200, 200]);
  app.advance(3_600_000);
  await app.runTask("sweep-objects");
  expect([await old("00001.m4s"), await old("00002.m4s")]).toEqual([404, 404]);
  expect(await frameHashes(await downloaded(app, hls_url))).toHaveLength(4 * FPS);
});

test("assets are joined from and to the bucket, and one whose media are gone is refused", async () => {
  const { app, key, parent, clip } = await clipped("proxy");
  const join = async () => {
    const body = { asset_ids: [parent.id, clip.id, parent.id] };
    return app.as(key).joinAssets(body);
  };
  const { body: joined } = await join();
  const { body: late } = await join();
  expect(await workOnce(app)).toBe("completed");
  await app.as(key).deleteAsset(clip.id);
  await app.as(key).deleteAsset(parent.id);
  app.advance(3_600_000);
  await app.runTask("sweep-objects");
  const { hls_url } = (await app.as(key).getPlayback(joined.id)).body;
  expect(await frameHashes(await downloaded(app, hls_url))).toHaveLength((2 * SECONDS + 8) * FPS);
  await expect(workOnce(app)).rejects.toThrow("failed");
  const { body } = await app.as(key).getAsset(late.id);
  expect(body).toMatchObject({ playback_status: "errored", error: { code: "join_not_possible" } });
});
