import { mkdirSync, readdirSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { type ClientRequest, request as httpRequest } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";

const MIB = 2 ** 20;
const RESERVE = 24 * MIB;
/** Each announces a size that fits, sends data that together do not fit, and then stalls. */
const ANNOUNCED = 8 * MIB;
const SENT = 6 * MIB;
const SENDERS = 16;

type Sending = { method: string; url: string; headers: Record<string, string | number>; start?: string };

const PATHS = ["put", "tus", "import", "chunk", "part", "ingest proxy"] as const;

test.for(rows(PATHS, 3))(
  "many stalled bodies together leave the reserve of the disk free: %s",
  async (name, context) => {
    const disk = smallDisk(context, 96);
    const dataDir = join(disk.path, "data");
    mkdirSync(dataDir);
    const server = await startServer(dataDir, {
      env: { VODBOX_MIN_FREE_BYTES: String(RESERVE), VODBOX_RATE_LIMIT_UPLOADS: "10000/60" },
    });
    const { admin, as, call, base } = server;
    const tenants: string[] = [];
    for (let n = 0; n < SENDERS; n++) {
      const made = await as({ admin }).createTenant({ name: `t${n}`, slug: `t${n}` });
      const body = { tenant_id: made.body.id, scopes: ["assets:read", "assets:write"] };
      tenants.push((await as({ admin }).createApiKey(body)).body.token);
    }
    const [owner = ""] = tenants;
    const free = () => {
      const { bavail, bsize } = statfsSync(disk.path);
      return bavail * bsize;
    };
    const initiate = { filename: "a.mp4", bytes_expected: ANNOUNCED };
    const signed = async (): Promise<Sending> => {
      const { body } = await as(owner).initiateUpload(initiate);
      return { method: "PUT", url: body.upload_url, headers: { ...body.upload_headers, "content-length": ANNOUNCED } };
    };
    const paths: Record<(typeof PATHS)[number], (index: number) => Promise<Sending>> = {
      put: signed,
      async chunk() {
        const { headers, ...rest } = await signed();
        return { ...rest, headers: { ...headers, "content-range": `bytes 0-${ANNOUNCED - 1}/${ANNOUNCED}` } };
      },
      async part() {
        const begun = await as(owner).initiateMultipartUpload(initiate);
        const part = (await as(owner).signUploadPart(begun.body.id, { part_number: 1 })).body;
        return { method: "PUT", url: part.url, headers: { ...part.headers, "content-length": ANNOUNCED } };
      },
      async tus() {
        const headers = { "tus-resumable": "1.0.0", "upload-length": String(ANNOUNCED) };
        const metadata = { "upload-metadata": `filename ${Buffer.from("a.mp4").toString("base64")}` };
        const made = await call("POST", "/api/v1/uploads/tus", { key: owner, headers: { ...headers, ...metadata } });
        const patch = { "upload-offset": "0", "content-type": "application/offset+octet-stream" };
        const more = { ...headers, ...patch, "x-api-key": owner, "content-length": ANNOUNCED };
        return { method: "PATCH", url: new URL(made.headers.get("location") as string, base).href, headers: more };
      },
      async "ingest proxy"() {
        const batch = (await as(owner).createBatch({})).body;
        const wish = { object_key: "a.mp4", bytes_expected: ANNOUNCED, content_type: "video/mp4", mode: "proxy" };
        const at = `/api/v1/ingest_batches/${batch.id}/uploads`;
        const { id } = (await as(owner).createBatchUpload(batch.id, wish)).body;
        const headers = { "x-api-key": owner, "content-length": ANNOUNCED, "content-type": "video/mp4" };
        return { method: "PUT", url: `${base}${at}/${id}/proxy`, headers };
      },
      // A tenant has one import at a time.
      async import(index) {
        const headers = { "x-api-key": tenants[index] as string, "content-type": "text/csv" };
        return { method: "POST", url: `${base}/api/v1/assets/import`, headers };
      },
    };
    /** The size of the database and its journal, which grow with every request. */
    const recorded = () =>
      readdirSync(dataDir)
        .filter((file) => file.startsWith("vodbox.db"))
        .reduce((sum, file) => sum + statSync(join(dataDir, file)).size, 0);
    const before = free();
    const recordedBefore = recorded();
    expect(before, name).toBeGreaterThan(RESERVE + SENDERS * 2 * MIB);
    let least = before;
    const watch = setInterval(() => {
      least = Math.min(least, free());
    });
    atEnd(async () => clearInterval(watch));
    const requests: ClientRequest[] = [];
    const statuses: number[] = [];
    let sent = 0;
    for (let index = 0; index < SENDERS; index++) {
      const { method, url, headers } = await paths[name](index);
      const request = httpRequest(url, { method, headers, agent: false });
      requests.push(request);
      atEnd(async () => void request.destroy());
      request.on("response", (response) => statuses.push(response.resume().statusCode as number));
      request.on("error", () => {});
      const body = Buffer.alloc(SENT, "original_filename,title\n");
      request.write(body, () => {
        sent++;
      });
    }
    await until(`all bodies of ${name}`, () => sent + statuses.length >= SENDERS);
    // The server has stored what fits and writes nothing more, although it is not stopped: it answers, and so has handled
    // what had arrived before.
    let first = -1;
    let rests = 0;
    await until(`the disk to rest after ${name}`, async () => {
      expect((await as().getHealth()).status).toBe(200);
      // The server's own writes, such as those of its log and database, are small.
      rests = Math.abs(free() - first) < MIB / 4 ? rests + 1 : 0;
      if (rests === 0) first = free();
      return rests >= 20;
    });
    expect(least, name).toBeGreaterThanOrEqual(RESERVE - MIB);
    expect(statuses, name).toContain(507);
    expect(new Set(statuses), name).toEqual(new Set([507]));
    // Others can still write to the database.
    const patch = await as({ admin }).updateTenant("t0", { name: `after ${name}` });
    expect(patch.status, name).toBe(200);
    for (const request of requests) request.destroy();
    if (name === "import")
      await until("the imports to be gone", () => free() + recorded() > before + recordedBefore - MIB);
  },
);

test("below the reserve small requests are served, and large ones are refused", async (context) => {
  const disk = smallDisk(context, 96);
  const dataDir = join(disk.path, "data");
  mkdirSync(dataDir);
  const server = await startServer(dataDir, { env: { VODBOX_MIN_FREE_BYTES: String(RESERVE) } });
  const { admin, as, call } = server;
  const tenant = (await as({ admin }).createTenant({ name: "a", slug: "a" })).body;
  const scopes = { tenant_id: tenant.id, scopes: ["assets:read", "assets:write"] };
  const key = (await as({ admin }).createApiKey(scopes)).body.token;
  const upload = { filename: "a.mp4", bytes_expected: 1 };
  const { asset_id: id } = (await as(key).initiateUpload(upload)).body;
  const cues = Array.from({ length: 400 }, (_, n) => ({ start_ms: n, payload: { text: "x".repeat(400) } }));
  const track = (name: string) => as(key).setTrack(id, { kind: "scene", name, cues });
  expect((await track("before")).status).toBe(201);
  const { bavail, bsize } = statfsSync(disk.path);
  writeFileSync(join(disk.path, "filler"), Buffer.alloc(bavail * bsize - RESERVE + MIB));
  expect(await track("after")).toMatchObject({ status: 507, body: { code: "storage_full" } });
  const csv = { raw: "original_filename,title\na.mp4,b\n", headers: { "content-type": "text/csv" } };
  expect((await call("POST", "/api/v1/assets/import", { key, ...csv })).status).toBe(507);
  const body = { video_asset: { title: "Still works" } };
  expect((await as(key).updateAsset(id, body)).status).toBe(200);
  expect((await as(key).deleteAsset(id)).status).toBe(204);
});
