import { eq } from "drizzle-orm";
import { expect, test } from "vitest";
import { assets, type subtitles } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased, tiny, tinyAsset } from "#test/support/batches.ts";
import { checkup } from "#test/support/doctor.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";

const DAY_MS = 86_400_000;
type Store = NonNullable<TestApp["opened"]["app"]["objects"]>;
const storeOf = (app: TestApp) => app.opened.app.objects as Store;
const held = async (app: TestApp, key: string) => (await storeOf(app).head(key)) !== null;
const lose = async (app: TestApp, ...keys: (string | null)[]) => {
  for (const key of keys) {
    expect(await held(app, key as string), String(key)).toBe(true);
    await storeOf(app).delete(key as string);
  }
};
const random24 = (letter: string) => letter.repeat(24);

async function scene(flags: Record<string, unknown> = {}) {
  const app = await testApp(flags);
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const assetOf = async (id: number) => (await app.as(key).getAsset(id)).body;
  const used = async () => (await app.as(key).listTenants()).body[0].storage_bytes;
  return { app, tenant, key, assetOf, used };
}

test("lost media are re-encoded from the source, with a job and its event, and other assets continue or are errored", async () => {
  const { app, key, assetOf, used } = await scene();
  const manifest = await readyAsset(app, key);
  const picture = await readyAsset(app, key);
  const bare = await readyAsset(app, key);
  const whole = await readyAsset(app, key);
  const kept = await readyAsset(app, key);
  const subtitle = await subtitled(app, key, kept.asset.id);
  const batch = await leased(app, key);
  await batch.putAll(tiny("a/"));
  await batch.putAll(tiny("b/"));
  const delivered = await batch.commit({ assets: [tinyAsset("a/"), tinyAsset("b/", { title: "B" })] });
  expect(delivered.status).toBe(200);
  const [, second] = delivered.body.assets;
  expect((await checkup(app)).of("missing")).toMatchObject({ ok: true, fixed: 0 });

  const outputs = (one: typeof manifest) => one.contract.outputs;
  const texts = await app.opened.app.db.all<typeof subtitles.$inferSelect & { object_key: string }>(
    "select object_key from subtitles",
  );
  await lose(app, outputs(manifest).manifest_path);
  await lose(app, outputs(picture).thumbnail_path);
  await lose(app, bare.asset.source_key);
  await lose(app, whole.asset.source_key, outputs(whole).manifest_path, outputs(whole).thumbnail_path);
  await lose(app, texts[0]?.object_key as string);
  await lose(app, second.manifest_path);
  await app.newEvents();

  const looked = await checkup(app);
  expect(looked.ok).toBe(false);
  const missing = looked.of("missing");
  expect(missing).toMatchObject({ ok: false, fixed: 0 });
  expect(missing.detail).toMatch(/^8 of \d+ objects referenced by the database are missing/);
  expect(missing.detail).toContain(`asset ${manifest.asset.id}: ${outputs(manifest).manifest_path} (manifest)`);
  // It only reported.
  expect(await app.newEvents()).toEqual([]);
  expect(await assetOf(whole.asset.id)).toMatchObject({ playback_status: "ready" });

  const before = await used();
  const fixed = await checkup(app, { fix: true });
  expect(fixed.of("missing")).toMatchObject({ ok: true, fixed: 8 });
  for (const told of ["2 assets are re-encoded", "2 assets are errored", "1 assets continue", "1 subtitles are failed"])
    expect(fixed.of("missing").detail).toContain(told);
  const events = await app.newEvents();
  const about = (type: string) =>
    events.filter((event) => event.type === type).map(({ data }) => Number((data as { asset_id: string }).asset_id));
  expect(about("video.job.queued").sort()).toEqual([manifest.asset.id, picture.asset.id]);
  expect(about("video.asset.errored").sort()).toEqual([whole.asset.id, second.id].sort());
  expect(events).toHaveLength(4);

  expect(await assetOf(manifest.asset.id)).toMatchObject({ playback_status: "processing", stage: "queued" });
  expect(await assetOf(picture.asset.id)).toMatchObject({ playback_status: "ready", stage: "queued" });
  expect(await assetOf(bare.asset.id)).toMatchObject({ playback_status: "ready", source_bytes: 0, error: null });
  for (const id of [whole.asset.id, second.id])
    expect(await assetOf(id)).toMatchObject({ playback_status: "errored", error: { code: "media_lost" } });
  expect(await used()).toBeLessThan(before);
  const retried = await app.as(key).retryAsset(whole.asset.id);
  expect([retried.status, retried.error.code]).toEqual([409, "asset_conflict"]);
  expect((await app.as(key).getSubtitle(kept.asset.id, subtitle.id)).body).toMatchObject({
    status: "failed",
    bytes: 0,
    content: "",
  });
  const content = "WEBVTT\n\n00:00.000 --> 00:01.000\nAgain\n";
  expect((await app.as(key).updateSubtitle(kept.asset.id, subtitle.id, { content })).body).toMatchObject({
    status: "ready",
  });

  // While jobs are in progress there is no fault, and a second --fix changes nothing.
  const again = await checkup(app, { fix: true });
  expect(again.of("missing")).toMatchObject({ ok: true, fixed: 0 });
  expect(again.of("missing").detail).toContain("2 are being created again");
  expect(await app.newEvents()).toEqual([]);
  for (const _ of [1, 2]) {
    const { body: contract } = await next(app);
    const media = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };
    const done = await callback(app, contract, "complete", { ...(await putArtifacts(app, contract)), media });
    expect(done.status).toBe(200);
  }
  expect(await assetOf(manifest.asset.id)).toMatchObject({ playback_status: "ready", error: null });
  const last = await checkup(app);
  expect(last.of("missing").detail).not.toContain("being created");
  expect(last.of("missing").ok).toBe(true);
});

test("a source that is lost before its job is reported, and its job fails by itself", async () => {
  const { app, key } = await scene();
  const made = await uploaded(app, key);
  await lose(app, made.asset.source_key);
  const fixed = await checkup(app, { fix: true });
  expect(fixed.of("missing")).toMatchObject({ ok: false, fixed: 0 });
  expect(fixed.of("missing").detail).toContain(`job ${made.job.id} is queued`);
});

test("a delivery whose bytes are lost may be uploaded again", async () => {
  const { app, tenant, key } = await scene();
  const batch = await leased(app, key);
  await batch.putAll(tiny());
  const listed = await storeOf(app).list(`tenants/${tenant.id}/ingest/`);
  const segment = listed.objects.find((one) => one.key.endsWith("low/1.m4s"))?.key as string;
  await lose(app, segment);
  expect((await checkup(app)).of("missing").detail).toContain(`${segment} (delivery)`);
  expect((await checkup(app, { fix: true })).of("missing")).toMatchObject({ ok: true, fixed: 1 });
  await batch.put("low/1.m4s", "first segment");
  expect((await batch.commit({ assets: [tinyAsset()] })).status).toBe(200);
});

test("unreferenced objects are removed once they are a day old; those in progress, recent or foreign are kept", async () => {
  const { app, tenant, key } = await scene();
  const store = storeOf(app);
  const base = `tenants/${tenant.id}/`;
  const ready = await readyAsset(app, key);
  await subtitled(app, key, ready.asset.id);
  const [, job] = ready.contract.outputs.prefix.match(/(\d+)-\d+\/$/) as string[];
  const ours = [
    `${base}sources/${random24("a")}.mp4`,
    `${base}assets/${ready.asset.id}/${job}-999/low/1.m4s`,
    `${base}assets/77777/1-2/master.m3u8`,
    `${base}assets/${ready.asset.id}/subtitles/${random24("b")}.vtt`,
    `${base}assets/${ready.asset.id}/pictures/0123456789abcdef/poster-w320-h.jpg`,
    `${base}delivered/${random24("c")}/master.m3u8`,
    `${base}ingest/${random24("d")}/x.mp4`,
    "vodbox-check-0123456789ab",
  ];
  const unknown = [`${base}sources/mine.mp4`, `${base}notes/a.txt`, "backup/2026.tar", "tenants.txt", "zzz/last"];
  for (const one of [...ours, ...unknown]) await store.put(one, Buffer.from("12345"));
  // In progress: an upload, a batch, and artifacts of a worker so far; an on-demand image.
  const upload = await app.as(key).initiateUpload({ filename: "clip.mp4", bytes_expected: 3 });
  await app.call("PUT", upload.body.upload_url, { raw: "abc", headers: upload.body.upload_headers });
  const batch = await leased(app, key);
  await batch.putAll(tiny());
  await uploaded(app, key);
  const { body: contract } = await next(app);
  await putArtifacts(app, contract);
  const all = async () => {
    const keys: string[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const page: Awaited<ReturnType<Store["list"]>> = await store.list("", { limit: 7, ...(cursor && { cursor }) });
      keys.push(...page.objects.map((object) => object.key));
      cursor = page.cursor ?? undefined;
    }
    return keys.filter((one) => one !== "vodbox-check");
  };
  const before = await all();

  // All of it is recent.
  const young = await checkup(app, { fix: true });
  expect(young.of("unreferenced")).toMatchObject({ ok: true, fixed: 0 });
  expect(young.of("unreferenced").detail).toContain(`${ours.length} younger than 24 hours were skipped`);
  expect(await all()).toEqual(before);

  app.advance(DAY_MS + 60_000);
  const told = await checkup(app);
  expect(told.of("unreferenced")).toMatchObject({ ok: false, fixed: 0 });
  expect(told.of("unreferenced").detail).toContain(`${ours.length} (${ours.length * 5} bytes) are unreferenced`);
  expect(told.of("unreferenced").detail).toContain(`${unknown.length} unknown were skipped: backup/2026.tar`);
  expect(await all()).toEqual(before);

  // A backup delays it.
  const hold = await app.as({ admin: app.admin }).createRemovalHold();
  const waiting = await checkup(app, { fix: true });
  expect(waiting.of("unreferenced")).toMatchObject({
    ok: false,
    fixed: 0,
    detail: expect.stringContaining("a backup"),
  });
  expect(await all()).toEqual(before);
  await app.as({ admin: app.admin }).deleteRemovalHold(hold.body.id);

  const fixed = await checkup(app, { fix: true });
  expect(fixed.of("unreferenced")).toMatchObject({ ok: true, fixed: ours.length });
  expect(fixed.of("unreferenced").detail).toContain(
    `${ours.length} (${ours.length * 5} bytes) that nothing names were`,
  );
  const after = await all();
  const day = new Date(app.opened.app.clock.now()).toISOString().slice(0, 10);
  expect(after.filter((one) => !one.startsWith("trash/"))).toEqual(before.filter((one) => !ours.includes(one)));
  expect(after.filter((one) => one.startsWith("trash/"))).toEqual(ours.map((one) => `trash/${day}/${one}`).toSorted());
  expect((await checkup(app)).of("unreferenced").ok).toBe(true);
  const log = await app.as({ admin: app.admin }).listAuditEntries({ limit: 500 });
  const entries = log.body.filter(({ route }: { route: string }) => route.endsWith("/doctor/checkup"));
  // Files that might have changed something.
  expect(entries.map(({ fields, method }: { fields: string[]; method: string }) => [method, fields])).toEqual(
    [1, 2, 3].map(() => ["POST", ["fix"]]),
  );
});

test("a majority of objects is not removed without --force, and objects in the trash can be restored for 7 days", async () => {
  const { app, tenant, key } = await scene();
  const ready = await readyAsset(app, key);
  const lostKeys = Array.from({ length: 40 }, (_, n) => `tenants/${tenant.id}/delivered/${random24("c")}/${n}.m4s`);
  const store = storeOf(app);
  for (const one of lostKeys) await store.put(one, Buffer.from("12345"));
  app.advance(DAY_MS + 60_000);
  const looked = await checkup(app);
  expect(looked.of("unreferenced")).toMatchObject({ ok: false, fixed: 0 });
  for (const body of [{ fix: true }, { fix: true, force: false }]) {
    const refused = await checkup(app, body);
    expect(refused).toMatchObject({ ok: false });
    expect(refused.of("unreferenced")).toMatchObject({
      ok: false,
      fixed: 0,
      detail: expect.stringMatching(/^40 of \d+ objects .*more than half of all.*nothing was removed.*--fix --force/),
    });
    for (const one of lostKeys) expect(await held(app, one)).toBe(true);
  }
  // `force` alone changes nothing.
  expect((await checkup(app, { force: true })).of("unreferenced")).toMatchObject({ ok: false, fixed: 0 });
  const forced = await checkup(app, { fix: true, force: true });
  expect(forced.of("unreferenced")).toMatchObject({
    ok: true,
    fixed: 40,
    detail: expect.stringContaining("were moved to trash/, where they stay for 7 days"),
  });
  const day = new Date(app.opened.app.clock.now()).toISOString().slice(0, 10);
  const trashed = (one: string) => `trash/${day}/${one}`;
  for (const one of lostKeys) expect([await held(app, one), await held(app, trashed(one))]).toEqual([false, true]);
  expect((await checkup(app, { fix: true, force: true })).of("unreferenced")).toMatchObject({ ok: true, fixed: 0 });
  // As documented, back to its key.
  const [first = "", second = ""] = lostKeys;
  await store.copy(trashed(first), first);
  expect(Buffer.concat((await (await store.get(first))?.body.toArray()) ?? []).toString()).toBe("12345");
  await store.put("trash/mine.txt", Buffer.from("not ours"));

  app.advance(7 * DAY_MS - 60_000);
  await app.runTask("empty-trash");
  expect(await held(app, trashed(second))).toBe(true);
  app.advance(DAY_MS + 60_000);
  await app.runTask("empty-trash");
  expect((await store.list("trash/")).objects.map((one) => one.key)).toEqual(["trash/mine.txt"]);
  expect(await held(app, ready.contract.outputs.manifest_path)).toBe(true);
  expect(await held(app, first)).toBe(true);
});

test("an object that is referenced between the check and the removal is kept", async () => {
  const { app, tenant, key } = await scene();
  const source = `tenants/${tenant.id}/sources/${random24("z")}.mp4`;
  await storeOf(app).put(source, Buffer.from("x"));
  app.advance(DAY_MS + 60_000);
  const { db, write } = app.opened.app;
  const made = await readyAsset(app, key);
  // As the second check begins: the latest possible moment.
  const store = storeOf(app);
  const list = store.list.bind(store);
  let named = false;
  store.list = async (...all) => {
    const page = await list(...all);
    if (page.objects.some((one) => one.key === source) && !named) {
      named = true;
      await write(async (tx) => tx.update(assets).set({ sourceKey: source }).where(eq(assets.id, made.asset.id)));
    }
    return page;
  };
  const fixed = await checkup(app, { fix: true });
  expect(named).toBe(true);
  expect(fixed.of("unreferenced").fixed).toBe(0);
  expect(await held(app, source)).toBe(true);
  expect(await db.select().from(assets).where(eq(assets.sourceKey, source)).all()).toHaveLength(1);
});

test("one check-up at a time: an equal request shares it, another is refused", async () => {
  const { app, key } = await scene();
  for (let i = 0; i < 3; i++) await uploaded(app, key);
  expect((await app.as({ admin: app.admin }).getCheckup()).status).toBe(204);
  const first = await app.as({ admin: app.admin }).startCheckup({});
  const like = await app.as({ admin: app.admin }).startCheckup({ fix: false });
  expect([first.status, like.status, like.body.started_at]).toEqual([202, 202, first.body.started_at]);
  const other = await app.as({ admin: app.admin }).startCheckup({ fix: true });
  expect([other.status, other.error.code]).toEqual([409, "checkup_running"]);
  expect((await app.as(key).startCheckup({})).status).toBe(401);
  await checkup(app);
});

test("a clock that was set back is detected by rows in the future", async () => {
  const { app } = await scene();
  expect((await checkup(app)).of("clock")).toMatchObject({ ok: true });
  app.advance(10 * 60_000);
  await app.tenant();
  app.advance(-9 * 60_000);
  expect((await checkup(app)).of("clock").ok).toBe(false);
  expect((await checkup(app)).of("clock").detail).toMatch(/are 5\d\d s in the future|are 54\d s/);
  app.advance(-5 * 60_000);
  expect((await checkup(app)).of("clock").detail).toMatch(/set back by 2\d\d s since the server started/);
});
