import { join } from "node:path";
import { createClient } from "@libsql/client";

/** Inserts `count` assets for a tenant of a stopped server, `1.mp4` and so on, with texts of realistic length. */
export async function insertAssets(dataDir: string, tenantId: number, count: number): Promise<void> {
  const client = createClient({ url: `file:${join(dataDir, "vodbox.db")}` });
  try {
    await client.execute({
      sql: `with recursive n (i) as (values (1) union all select i + 1 from n where i < ?2)
        insert into assets (tenant_id, external_id, title, description, original_filename, input_status, playback_status,
          playback_policy, source_key, created_at, updated_at)
        select ?1, 'vid_' || ?1 || '_' || i, 'Clip number ' || i, 'As it came from the camera, day ' || (i % 97),
          i || '.mp4', 'pending', 'draft', 'signed', 'k', 1, 1 from n`,
      args: [tenantId, count],
    });
  } finally {
    client.close();
  }
}
