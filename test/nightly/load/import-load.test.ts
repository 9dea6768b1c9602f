import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { csv, env, prepared, ROWS, send } from "#test/support/imports.ts";
import { startServer } from "#test/support/process.ts";

const quantile = (sorted: number[], share: number) => sorted[Math.ceil(sorted.length * share) - 1] as number;

/** Response times of another tenant's PATCH during an import, in ms. */
async function whileImporting(title: string) {
  const { dataDir, importer, other } = await prepared();
  const server = await startServer(dataDir, { env });
  const [asset] = (await server.as(other.key).listAssets({ limit: 1 })).body;
  const patch = async (name: string) => {
    const from = performance.now();
    const body = { video_asset: { title: name } };
    const { status } = await server.as(other.key).updateAsset(asset.id, body);
    expect(status).toBe(200);
    return performance.now() - from;
  };
  const before: number[] = [];
  for (let n = 0; n < 200; n++) before.push(await patch(`before ${n}`));
  let isDone = false;
  const from = performance.now();
  const importing = send(server, importer.key, csv(title)).finally(() => {
    isDone = true;
  });
  const times: number[] = [];
  while (!isDone) {
    times.push(await patch(`during ${times.length}`));
    await sleep(5);
  }
  const { status, body } = await importing;
  const seconds = (performance.now() - from) / 1000;
  expect(status).toBe(200);
  expect(body.applied).toHaveLength(ROWS);
  expect(body.applied.at(-1)).toMatchObject({ row: ROWS + 1, changed: ["title", "tags"] });
  const q = encodeURIComponent(`${title} ${ROWS}`);
  const found = await server.as(importer.key).listAssets({ q });
  expect(found.body).toMatchObject([{ title: `${title} ${ROWS}`, tags: { take: String((ROWS - 1) % 9) } }]);
  server.child.kill("SIGKILL");
  times.sort((a, b) => a - b);
  const p50 = quantile(times, 0.5);
  const p99 = quantile(times, 0.99);
  const max = times.at(-1) as number;
  console.info({ imported_s: seconds.toFixed(1), patches: times.length, p50, p99, max });
  expect(times.length).toBeGreaterThan(100);
  // What the machine adds, it adds before the import too.
  const worst = Math.max(...before);
  return { isFast: p99 < Math.max(100, 2 * worst) && max < Math.max(500, 5 * worst), p99, max, worst };
}

test("an import of 100,000 rows keeps another tenant's PATCH fast", async () => {
  // A busy machine only adds to it: the best of three is the effect of the import.
  const found = [await whileImporting("Import")];
  while (found.length < 3 && !found.some(({ isFast }) => isFast)) found.push(await whileImporting("Import"));
  expect(found.at(-1), JSON.stringify(found)).toMatchObject({ isFast: true });
});
