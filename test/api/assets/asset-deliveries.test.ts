import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeAll(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  return app.close;
});
const path = (id: number, query = "") => `/api/v1/assets/${id}/deliveries${query}`;
const endpoint = async (own: string) => (await app.as(own).createWebhook({ url: "https://example.com/hook" })).body;
const names = (list: { body: { event: string }[] }) => list.body.map(({ event }) => event);

test("lists what was sent about one asset, over all endpoints, newest event first", async () => {
  const first = await endpoint(key);
  const second = await endpoint(key);
  const { asset } = await uploaded(app, key);
  const { asset: other } = await uploaded(app, key);
  await app.as(key).setTrackByPut(asset.id, { kind: "chapter", cues: [] });
  const all = await app.as(key).listAssetDeliveries(asset.id);
  expect(names(all)).toEqual([
    ...Array(2).fill("video.track.ready"),
    ...Array(2).fill("video.job.queued"),
    ...Array(2).fill("video.upload.completed"),
  ]);
  expect(new Set(all.body.map((one) => one.endpoint_id))).toEqual(new Set([first.id, second.id]));
  expect(names(await app.as(key).listAssetDeliveries(other.id))).not.toContain("video.track.ready");

  // The same list page by page.
  const collected = [];
  let next: string | undefined = path(asset.id, "?limit=4");
  while (next) {
    const page: any = await app.call("GET", next, { key });
    collected.push(...page.body);
    next = /<([^>]+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1];
  }
  expect(collected).toEqual(all.body);
  expect((await app.as(key).listAssetDeliveries(asset.id, { status: "failed" })).body).toEqual([]);
  expect((await app.as(key).listAssetDeliveries(asset.id, { status: "pending" })).body).toHaveLength(6);
  await app.as(key).deleteWebhook(first.id);
  expect((await app.as(key).listAssetDeliveries(asset.id)).body).toHaveLength(3);
});

test("refuses what is not a list of this asset", async () => {
  const { asset } = await uploaded(app, key);
  for (const query of ["?status=lost", "?cursor=x", "?cursor=bnVsbA", "?cursor=WzEsMiwzXQ", "?limit=0"])
    expectError(await app.call("GET", path(asset.id, query), { key }), 422, "validation_failed", query);
  const other = await app.tenant();
  const theirs = await app.key(other.id);
  await endpoint(theirs);
  for (const at of [path(asset.id), path(987_654_321)])
    expectError(await app.call("GET", at, { key: theirs }), 404, "not_found");
  const reader = await app.key(tenant.id, ["assets:read"]);
  expectError(await app.as(reader).listAssetDeliveries(asset.id), 403, "forbidden_scope");
});

test("reads only the rows of its page, through an index", async () => {
  const plan = await app.opened.app.db.all<{ detail: string }>(`EXPLAIN QUERY PLAN
    SELECT webhook_deliveries.id FROM webhook_deliveries
    JOIN events ON events.id = webhook_deliveries.event_id
    JOIN webhook_endpoints ON webhook_endpoints.id = webhook_deliveries.endpoint_id
    WHERE json_extract(events.data, '$.asset_id') = '1' AND +events.tenant_id = 1
      AND webhook_endpoints.deleted_at IS NULL AND webhook_deliveries.status = 'failed'
    ORDER BY events.id DESC, webhook_deliveries.id DESC LIMIT 51`);
  const steps = plan.map(({ detail }) => detail).join("\n");
  expect(steps).toContain("USING INDEX events_by_asset (<expr>=?)");
  expect(steps).not.toMatch(/TEMP B-TREE|SCAN/);
});
