import type { App } from "#app.ts";
import { emit } from "#platform/events/emit.ts";
import type { Db } from "#storage/db/open.ts";
import type { AudioTrackRow } from "#storage/db/schema.ts";

const dataOf = ({ id, assetId, language, name }: AudioTrackRow) => ({
  asset_id: String(assetId),
  track_id: id,
  language,
  name,
});

/** An event of an audio track, in the transaction that has changed its row. */
export const emitAudioTrack = (
  tx: Db,
  app: App,
  type: "video.audio_track.created" | "video.audio_track.ready" | "video.audio_track.deleted",
  row: AudioTrackRow,
): Promise<void> => emit(tx, app, type, { tenantId: row.tenantId, data: dataOf(row) });

/** Says why an added audio track could not be encoded. */
export const emitAudioTrackErrored = (
  tx: Db,
  app: App,
  row: AudioTrackRow,
  error: { code: string; message: string },
): Promise<void> =>
  emit(tx, app, "video.audio_track.errored", { tenantId: row.tenantId, data: { ...dataOf(row), error } });
