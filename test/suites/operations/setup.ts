import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { Readable } from "node:stream";
import { localStore } from "#storage/objects/local.ts";
import { s3Store } from "#storage/objects/s3.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import type { Call } from "#test/support/client.ts";
import { newBucket, type S3Place } from "#test/support/s3-server.ts";
import { typedClient } from "#test/support/typed-client.ts";

export const BUCKET = newBucket("migration");
export const PATH = "/api/v1/admin/storage/migration";

/** S3 settings with a prefix for this test. */
export const s3Settings = (s3: S3Place, prefix: string) => ({
  s3_endpoint: s3.endpoint,
  s3_bucket: BUCKET,
  s3_region: s3.region,
  s3_access_key_id: s3.accessKeyId,
  s3_secret_access_key: s3.secretAccessKey,
  s3_prefix: prefix,
});
export const asEnvironment = (settings: Record<string, string>) =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [`VODBOX_${name.toUpperCase()}`, value]));

export const s3At = (s3: S3Place, prefix: string) =>
  s3Store({ ...s3, bucket: BUCKET, pathStyle: true, prefix: `${prefix}/` });
export const localAt = (dataDir: string) =>
  localStore({ root: join(dataDir, "objects"), signing: { secret: "x", baseUrl: "http://x" } });

export type Ledger = Map<string, string>;
const sum = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Objects of all kinds and sizes: many, one of several parts, an empty one, unusual names. */
export async function fill(store: ObjectStore, count: number): Promise<Ledger> {
  const ledger: Ledger = new Map();
  const put = async (key: string, bytes: Buffer) => {
    ledger.set(key, sum(bytes));
    await store.put(key, Readable.from([bytes]));
  };
  await put("tenants/1/extra/empty", Buffer.alloc(0));
  await put("tenants/1/extra/large.mp4", randomBytes(20_000_003));
  await put("tenants/1/extra/ünïcödé/日本語/🎬 50 %.vtt", Buffer.from("WEBVTT"));
  await put("tenants/1/extra/a+b&c=d?e#f'g.m4s", Buffer.from("strange"));
  for (let i = 0; i < count; i += 20) {
    const some = Array.from({ length: Math.min(20, count - i) }, (_, at) => i + at);
    await Promise.all(
      some.map((n) => put(`tenants/1/extra/segments/${n % 7}/${n}.m4s`, randomBytes(1000 + ((n * 7919) % 200_000)))),
    );
  }
  return ledger;
}

/** The checksums of everything under `prefix`. */
export async function sumsOf(store: ObjectStore, prefix: string): Promise<Ledger> {
  const ledger: Ledger = new Map();
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Awaited<ReturnType<ObjectStore["list"]>> = await store.list(prefix, cursor === "" ? {} : { cursor });
    for (const { key } of page.objects) {
      const found = await store.get(key);
      if (found) ledger.set(key, sum(Buffer.concat(await found.body.toArray())));
    }
    cursor = page.cursor;
  }
  return ledger;
}

export const inOrder = (ledger: Ledger) => [...ledger].sort(([a], [b]) => (a < b ? -1 : 1));

/** The content of the asset's source, through the public API. */
export async function sourceSum(call: Call, key: string, assetId: number): Promise<string | null> {
  const told = await typedClient(call)(key).getDownload(assetId);
  if (told.status !== 200) return null;
  const answer = await fetch(told.body.url);
  return answer.ok ? sum(new Uint8Array(await answer.arrayBuffer())) : null;
}
