import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { liveChannels } from "#storage/db/schema.ts";

/** What is known of a stream whose process was killed. */

/** When the last segment of a stream was begun: ms since the epoch; `otherwise` for a stream without files. */
export async function lastWrite(folder: string, otherwise: number): Promise<number> {
  const tracks = await readdir(folder).catch(() => []);
  const times = await Promise.all(tracks.map(async (name) => (await stat(join(folder, name))).mtimeMs));
  return times.length > 0 ? Math.round(Math.max(...times)) : otherwise;
}

/** Whether the channel wants its recordings encoded. */
export async function isEncoded(app: App, channelId: number): Promise<boolean> {
  const columns = { encodingProfile: liveChannels.encodingProfile };
  const row = await app.db.select(columns).from(liveChannels).where(eq(liveChannels.id, channelId)).get();
  return row?.encodingProfile != null;
}
