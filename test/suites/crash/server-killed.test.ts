import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer, stopCleanly } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";
import { Ledger, sha256 } from "./ledger.ts";
import { finish, loadUntilGone, newClients } from "./load.ts";

const ROUNDS = amount(2, 20, "CRASH_ROUNDS");
/** No lease expires in this test: jobs requeued after a restart would hide lost ones. */
const env = { VODBOX_RATE_LIMIT_UPLOADS: "1000000/60", VODBOX_LEASE_SECONDS: "600", VODBOX_MIN_FREE_BYTES: "0" };

/** Paths of all files under `folder`, relative to it. */
const filesUnder = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
const isTemporary = (path: string) => path.includes("/%tmp/");

test(`kill -9 under load, ${ROUNDS} times: what was acknowledged is true, once`, async () => {
  const random = seeded();
  const dataDir = emptyFolder();
  const objects = join(dataDir, "objects");
  const ledger = new Ledger();
  const clients = newClients(4, 2);
  let server = await startServer(dataDir, { env });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Load", slug: "load" });
  const scopes = ["assets:read", "assets:write"];
  const issued = await server.as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const key = issued.body.token;
  const sceneOf = (now: RunningServer) => ({ server: now, ledger, random, clients, key, tenantId: tenant.body.id });
  let leftovers = 0;

  for (let round = 1; round <= ROUNDS; round++) {
    const uploadsBefore = ledger.uploads.length;
    const keysBefore = ledger.keys.length;
    const jobsBefore = ledger.completedJobs.size;
    const loaded = loadUntilGone(sceneOf(server));
    const acknowledged = ledger.after(random.whole(10, 60));
    await Promise.race([acknowledged, loaded]);
    // At any moment during the work, not only right after a response.
    await new Promise((resolve) => setTimeout(resolve, random.next() * 12));
    server.child.kill("SIGKILL");
    expect((await server.ended).signal).toBe("SIGKILL");
    await loaded;
    leftovers += filesUnder(objects).filter(isTemporary).length;

    server = await startServer(dataDir, { env });
    expect(filesUnder(objects).filter(isTemporary)).toEqual([]);
    const inHand = clients.uploading.filter((upload) => upload !== null);
    for (const upload of new Set([...ledger.uploads.slice(uploadsBefore), ...inHand])) await checkUpload(upload);
    for (const { token, revoked } of ledger.keys.slice(keysBefore)) {
      const { status } = await server.as(token).listAssets({ limit: 1 });
      // A revocation whose response was lost may have happened or not.
      expect(revoked === "asked" ? [200, 401] : [revoked === "yes" ? 401 : 200]).toContain(status);
    }
    for (const assetId of [...ledger.completedJobs.values()].slice(jobsBefore))
      expect((await server.as(key).getAsset(assetId)).body.playback_status).toBe("ready");
  }

  await finish(sceneOf(server));
  for (const upload of ledger.uploads) await checkUpload(upload);
  await stopCleanly(server);
  console.log(
    `${ledger.acknowledged} answers, ${ledger.uploads.length} uploads, ${ledger.completedJobs.size} jobs, ${leftovers} torn writes swept`,
  );
  expect(ledger.completedJobs.size).toBe(ledger.uploads.filter((upload) => upload.jobId !== undefined).length);
  checkDatabase();

  async function checkUpload(upload: (typeof ledger.uploads)[number]): Promise<void> {
    if (upload.id === undefined) return;
    const [session, asset] = await Promise.all([
      server.as(key).getUpload(upload.id),
      server.as(key).getAsset(upload.assetId),
    ]);
    expect(session.body, upload.name).toMatchObject({ id: upload.id, asset_id: upload.assetId });
    expect(asset.body, upload.name).toMatchObject({ id: upload.assetId, title: upload.name });
    const file = join(objects, asset.body.source_key);
    if (upload.put) expect(sha256(readFileSync(file)), upload.name).toBe(upload.sha256);
    // Truncated bodies leave nothing.
    else if (existsSync(file)) expect(statSync(file).size, upload.name).toBe(upload.bytes.length);
    if (upload.jobId === undefined) return;
    expect(session.body, upload.name).toMatchObject({ status: "completed", bytes_received: upload.bytes.length });
    expect(asset.body.input_status).toBe("uploaded");
  }

  /** The rows themselves, including the outbox, without a server in between. */
  function checkDatabase(): void {
    const database = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
    try {
      const all = <R>(sql: string) => database.prepare(sql).all([]) as R[];
      expect(all("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
      expect(all("PRAGMA foreign_key_check")).toEqual([]);
      const completed = all<{ id: number; asset_id: number; bytes_received: number; object_key: string }>(
        "SELECT * FROM uploads WHERE status = 'completed' ORDER BY asset_id",
      );
      const acknowledged = ledger.uploads.filter((upload) => upload.jobId !== undefined);
      expect(completed.map((row) => row.id).sort()).toEqual(acknowledged.map((upload) => upload.id).sort());
      for (const row of completed) expect(statSync(join(objects, row.object_key)).size).toBe(row.bytes_received);
      // One asset per session, however often the initiate request was repeated with its key.
      expect(all("SELECT title FROM assets GROUP BY title HAVING count(*) > 1")).toEqual([]);

      const jobs = all<{ id: number; asset_id: number; status: string }>("SELECT * FROM transcoding_jobs ORDER BY id");
      expect(jobs.map((job) => job.asset_id).sort()).toEqual(completed.map((row) => row.asset_id).sort());
      expect(new Set(jobs.map((job) => job.status))).toEqual(new Set(["completed"]));
      expect(jobs.map((job) => job.id).sort()).toEqual([...ledger.completedJobs.keys()].sort());

      const events = all<{ type: string; data: string }>("SELECT type, data FROM events").map(({ type, data }) => ({
        type,
        data: JSON.parse(data) as { upload_id: number; job_id: number; asset_id: string },
      }));
      const told = (type: string, id: "upload_id" | "job_id" | "asset_id") =>
        events.filter((event) => event.type === type).map((event) => Number(event.data[id]));
      const sorted = (ids: number[]) => ids.toSorted((a, b) => a - b);
      expect(sorted(told("video.upload.completed", "upload_id"))).toEqual(sorted(completed.map((row) => row.id)));
      expect(sorted(told("video.job.queued", "job_id"))).toEqual(jobs.map((job) => job.id));
      expect(sorted(told("video.job.started", "job_id"))).toEqual(jobs.map((job) => job.id));
      expect(sorted(told("video.asset.ready", "asset_id"))).toEqual(completed.map((row) => row.asset_id));
      expect(sorted(told("video.asset.encoded", "asset_id"))).toEqual(completed.map((row) => row.asset_id));
      expect(events).toHaveLength(completed.length + 2 * jobs.length + 2 * ledger.completedJobs.size);
    } finally {
      database.close();
    }
  }
});
