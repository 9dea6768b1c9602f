import type { App } from "#app.ts";
import { emit } from "#platform/events/emit.ts";
import type { Db } from "#storage/db/open.ts";
import type { SubtitleRow } from "#storage/db/schema.ts";

const dataOf = ({ id, assetId, language, label, source }: SubtitleRow) => ({
  asset_id: String(assetId),
  subtitle_id: id,
  language,
  label,
  source,
});

/** An event of a subtitle, in the transaction that has changed its row. */
export const emitSubtitle = (
  tx: Db,
  app: App,
  type: "video.subtitle.created" | "video.subtitle.ready" | "video.subtitle.deleted",
  row: SubtitleRow,
): Promise<void> => emit(tx, app, type, { tenantId: row.tenantId, data: dataOf(row) });

/** Says why the text of a subtitle could not be created. */
export const emitSubtitleErrored = (
  tx: Db,
  app: App,
  row: SubtitleRow,
  error: { code: string; message: string },
): Promise<void> =>
  emit(tx, app, "video.subtitle.errored", { tenantId: row.tenantId, data: { ...dataOf(row), error } });
