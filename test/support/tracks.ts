import { sql } from "drizzle-orm";
import type { TestApp } from "./app.ts";

/** Inserts tracks of an asset, which are named by numbers from 1: by the API it would take minutes. */
export async function insertTracks(
  { opened }: Pick<TestApp, "opened">,
  assetId: number,
  { count, kind, cues }: { count: number; kind: string; cues: unknown },
): Promise<void> {
  await opened.app.write((tx) =>
    tx.run(sql`with recursive n (i) as (values (1) union all select i + 1 from n where i < ${count})
      insert into tracks (tenant_id, asset_id, kind, name, position, status, cues, created_at, updated_at)
      select tenant_id, id, ${kind}, i, i, 'ready', ${JSON.stringify(cues)}, 1, 1 from n, assets where id = ${assetId}`),
  );
}
