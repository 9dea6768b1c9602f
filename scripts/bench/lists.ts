import { join } from "node:path";
import Sqlite from "libsql";
import { ADMIN, call, memoryOf, type Running, startVodbox, workFolder } from "./processes.ts";
import { compare, p99, type Result } from "./result.ts";

const FEW = 1000;
const MANY = 100_000;
const REQUESTS = 300;
const MEBIBYTE = 2 ** 20;
/** Allowance for uncollected garbage, whatever the length of an export. */
const FLAT_MEBIBYTES = 32;

type Tenant = { id: number; key: string; assets: number };

/**
 * Pages of a tenant's 100,000 assets, compared with the same pages of one with 1,000; export and import of the many.
 */
export async function benchLists(): Promise<Result[]> {
  const work = workFolder();
  const data = join(work.path, "data");
  let server = await startVodbox(data);
  try {
    const tenants = [await tenantOf(server, "few", FEW), await tenantOf(server, "many", MANY)] as const;
    await server.stop();
    fill(join(data, "vodbox.db"), tenants);
    server = await startVodbox(data);
    const results = [...(await benchPages(server, tenants)), ...(await benchExports(server, tenants[1]))];
    return [...results, await benchImport(server, tenants[1]), await benchDeletion(server, tenants)];
  } finally {
    await server.stop();
    work.remove();
  }
}

async function tenantOf({ base }: Running, slug: string, assets: number): Promise<Tenant> {
  const { id } = await call<{ id: number }>(base, "POST", "/api/v1/admin/tenants", { name: slug, slug });
  const scopes = ["assets:read", "assets:write"];
  const { token } = await call<{ token: string }>(base, "POST", "/api/v1/api_keys", { tenant_id: id, scopes });
  await call(base, "POST", "/api/v1/collections", { tenant_id: id, collection: { name: "C", slug: "c" } });
  return { id, key: token, assets };
}

/** One in a hundred is ready, in the collection, or failed; one in a thousand has the rare word. These come first. */
function fill(file: string, tenants: readonly Tenant[]): void {
  const database = new Sqlite(file);
  for (const { id, assets } of tenants) {
    database.exec(`
      WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${assets})
      INSERT INTO assets (tenant_id, external_id, title, description, collection_id, input_status, playback_status,
        playback_policy, source_key, original_filename, tags, created_at, updated_at)
      SELECT ${id}, 'x-${id}-' || i, iif(i % 1000 = 7, 'zebra ', 'sunset ') || i, 'A holiday film, part ' || i,
        iif(i % 100 = 3, ${id}, NULL), iif(i % 100 = 4, 'failed', 'uploaded'), iif(i % 100 = 5, 'ready', 'draft'),
        'signed', 'tenants/${id}/sources/' || i || '.mp4', 'clip-' || i || '.mp4', '{"year":2026}', 1, 1 FROM n;`);
  }
  database.close();
}

const PAGES: Record<string, (tenant: Tenant) => string> = {
  "first page": () => "",
  "a page deep in": ({ id, assets }) =>
    `&cursor=${Buffer.from(`id:${id === 1 ? assets / 2 : FEW + assets / 2}`).toString("base64url")}`,
  playback_status: () => "&playback_status=ready",
  input_status: () => "&input_status=failed",
  collection_id: ({ id }) => `&collection_id=${id}`,
  external_id: ({ id }) => `&external_id=x-${id}-500`,
  "sort=title": () => "&sort=title",
  "sort=duration": () => "&sort=duration",
  "sort=size": () => "&sort=size",
  "sort=title, playback_status": () => "&sort=title&playback_status=ready",
  "q, a common word": () => "&q=sunset",
  "q, a rare word": () => "&q=zebra",
};

async function benchPages({ base }: Running, [few, many]: readonly [Tenant, Tenant]): Promise<Result[]> {
  const results: Result[] = [];
  for (const [name, query] of Object.entries(PAGES)) {
    // The same number of rows in both responses, or serialization would be compared.
    const samples = { few: [] as number[], many: [] as number[] };
    for (let round = 0; round < REQUESTS; round++) {
      for (const [side, tenant] of [
        ["few", few],
        ["many", many],
      ] as const) {
        const from = performance.now();
        await call(base, "GET", `/api/v1/assets?limit=${name.endsWith("word") ? 1 : 10}${query(tenant)}`, undefined, {
          "x-api-key": tenant.key,
        });
        samples[side].push(performance.now() - from);
      }
    }
    results.push(
      compare(
        `GET /assets of ${MANY}, ${name}, p99`,
        { ours: [p99(samples.many)], theirs: [p99(samples.few)] },
        { reference: `the same of ${FEW}`, unit: "ms", bar: { atMost: 2 } },
      ),
    );
  }
  return results;
}

async function benchExports({ base, child }: Running, { key }: Tenant): Promise<Result[]> {
  const results: Result[] = [];
  for (const path of ["export", "export?format=json", "graph_export"]) {
    const before = memoryOf(child.pid as number, "VmRSS");
    let most = before;
    const response = await fetch(`${base}/api/v1/assets/${path}`, { headers: { "x-api-key": key } });
    for await (const _ of response.body as unknown as AsyncIterable<Uint8Array>)
      most = Math.max(most, memoryOf(child.pid as number, "VmRSS"));
    const samples = { ours: [(most - before) / MEBIBYTE], theirs: [FLAT_MEBIBYTES] };
    const about = { reference: "a fixed allowance", unit: "MiB", bar: { atMost: 1 } };
    results.push(compare(`memory that ${path} of ${MANY} takes`, samples, about));
  }
  return results;
}

/** One row per asset; meanwhile another client requests the server's health every few milliseconds. */
async function benchImport({ base }: Running, { key, assets }: Tenant): Promise<Result> {
  const rows = Array.from({ length: assets }, (_, index) => `renamed ${index},clip-${index + 1}.mp4`);
  const from = performance.now();
  let done = false;
  const importing = fetch(`${base}/api/v1/assets/import`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "text/csv" },
    body: `title,original_filename\n${rows.join("\n")}\n`,
  }).then(async (answer) => {
    // What follows is work of this process, not the server's.
    done = true;
    return ((await answer.json()) as { applied: unknown[] }).applied.length;
  });
  const waits = await readsWhile(
    () => !done,
    () => call(base, "GET", "/api/v1/tenants", undefined, { "x-svc-admin-token": ADMIN }),
  );
  if ((await importing) !== assets) throw new Error("Not every row was applied");
  const seconds = (performance.now() - from) / 1000;
  return compare(
    `a read during an import of ${MANY} rows, p99`,
    { ours: [p99(waits)], theirs: [10] },
    {
      reference: "10 ms",
      unit: "ms",
      bar: { atMost: 1 },
      note: `(worst ${Math.max(...waits).toFixed(0)} ms; the import took ${seconds.toFixed(1)} s)`,
    },
  );
}

/** Durations in ms of reads, one after the other with 2 ms between them. */
async function readsWhile(isOn: (reads: number) => boolean, read: () => Promise<unknown>): Promise<number[]> {
  const waits: number[] = [];
  while (isOn(waits.length)) {
    const asked = performance.now();
    await read();
    waits.push(performance.now() - asked);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return waits;
}

/** Reads of one tenant while the other one, with 100,000 assets, is deleted, compared with the same reads before. */
async function benchDeletion({ base }: Running, [few, many]: readonly [Tenant, Tenant]): Promise<Result> {
  const admin = { "x-svc-admin-token": ADMIN };
  const read = () => call(base, "GET", "/api/v1/assets?limit=20", undefined, { "x-api-key": few.key });
  const alone = await readsWhile((reads) => reads < 1000, read);
  const from = performance.now();
  await call(base, "DELETE", `/api/v1/admin/tenants/${many.id}?confirm=many`, undefined, admin);
  let isDeleting = true;
  const waiting = (async () => {
    const url = `${base}/api/v1/admin/tenants/${many.id}`;
    while ((await fetch(url, { headers: admin })).status === 200)
      await new Promise((resolve) => setTimeout(resolve, 100));
    isDeleting = false;
  })();
  const during = await readsWhile(() => isDeleting, read);
  await waiting;
  const seconds = (performance.now() - from) / 1000;
  return compare(
    `a list while another tenant with ${MANY} assets is deleted, p99`,
    { ours: [p99(during)], theirs: [p99(alone)] },
    {
      reference: "the same list before",
      unit: "ms",
      bar: { atMost: 2 },
      note: `(worst ${Math.max(...during).toFixed(0)} ms; the deletion took ${seconds.toFixed(1)} s)`,
    },
  );
}
