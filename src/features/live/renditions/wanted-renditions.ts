import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { findProfile, specOfProfile } from "#features/encoding-profiles/queries.ts";
import { type InitSegment, readInit } from "#lib/isobmff";
import type { OpenedStream } from "#live/ingest/messages.ts";
import { INIT_NAME } from "#media/arguments.ts";
import { type PlannedRendition, planLadder } from "#media/ladder.ts";
import { liveChannels } from "#storage/db/schema.ts";

/** The smallest ones: those are for the viewers who cannot receive what the publisher sends. */
const MAX_RENDITIONS = 3;
const DEFAULT_RATE = 30;

/** What is to be encoded of a stream while it runs. `delay`: see `InitSegment`. */
export type WantedRenditions = {
  track: string;
  delay: number;
  frameRate: number | undefined;
  renditions: PlannedRendition[];
};

/**
 * The renditions of the channel's encoding profile that are smaller than the video of the publisher, largest first. Null
 * when there are none, the channel has no profile, or the video is HDR. Throws the error of the file.
 */
export async function wantedRenditions(
  app: App,
  { tracks, channel }: OpenedStream,
  folder: string,
): Promise<WantedRenditions | null> {
  const video = tracks.find(({ kind }) => kind === "video");
  const columns = { encodingProfile: liveChannels.encodingProfile };
  const row = await app.db.select(columns).from(liveChannels).where(eq(liveChannels.id, channel.channelId)).get();
  if (!video || !row?.encodingProfile) return null;
  const profile = await findProfile(app.db, channel.tenantId, row.encodingProfile);
  const spec = profile && specOfProfile(profile);
  const init: InitSegment = readInit(await readFile(join(folder, video.track, INIT_NAME)));
  if (!spec?.video.enabled || init.hdr !== null) return null;
  const rate = { num: Math.round((video.frameRate ?? DEFAULT_RATE) * 1000), den: 1000 };
  const smaller = planLadder(init.width, init.height, rate, spec).filter(
    ({ width, height, name }) => width < init.width && height < init.height && name !== video.track,
  );
  const renditions = smaller.slice(-MAX_RENDITIONS);
  const { track, frameRate } = video;
  return renditions.length > 0 ? { track, frameRate, delay: init.delay, renditions } : null;
}
