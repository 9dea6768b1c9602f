import { newFolder } from "./folder.ts";
import { insertAssets } from "./many-assets.ts";
import { type RunningServer, startServer } from "./process.ts";
import { typedClient } from "./typed-client.ts";

export const ROWS = 100_000;
export const env = { VODBOX_RATE_LIMIT_UPLOADS: "1000000/60" };

async function tenantOf({ call, admin }: RunningServer, slug: string) {
  const { id } = (await typedClient(call)({ admin }).createTenant({ name: slug, slug })).body;
  const body = { tenant_id: id, scopes: ["assets:read", "assets:write"] };
  return { id: id as number, key: (await typedClient(call)({ admin }).createApiKey(body)).body.token as string };
}

/** A data directory with two tenants, one of which has so many assets. */
export async function prepared(rows = ROWS) {
  const dataDir = newFolder();
  const first = await startServer(dataDir, { env });
  const importer = await tenantOf(first, "importer");
  const other = await tenantOf(first, "other");
  first.child.kill("SIGTERM");
  await first.ended;
  await insertAssets(dataDir, importer.id, rows);
  await insertAssets(dataDir, other.id, 10);
  return { dataDir, importer, other };
}

export const csv = (title: string, rows = ROWS) =>
  `title,tags,original_filename\n${Array.from({ length: rows }, (_, i) => `${title} ${i + 1},take=${i % 9},${i + 1}.mp4\n`).join("")}`;

export const send = (server: RunningServer, key: string, raw: string) =>
  server.as({ key, headers: { "content-type": "text/csv" } }).importAssets(raw);
