import Sqlite from "libsql";
import type { ObjectStore } from "../../../../storage/objects/store.ts";

const PAGE = 1000;
/** A local store reads a whole folder for each page. */
const LISTED = 10_000;

type Named = { key: string; required: boolean };

/** Single objects: `key`, and whether whoever made the row had seen the object. Each statement takes an id to go on from. */
const KEYS = [
  `SELECT id, source_key AS key, input_status = 'uploaded' AS required FROM assets
    WHERE provider = 'managed' AND source_key <> ''`,
  ...["manifest_path", "dash_manifest_path", "thumbnail_path", "storyboard_path", "mp4_path"].map(
    (column) =>
      `SELECT id, ${column} AS key, 1 AS required FROM assets WHERE provider = 'managed' AND ${column} IS NOT NULL`,
  ),
  "SELECT id, object_key AS key, 1 AS required FROM subtitles WHERE true",
  `SELECT upload.id, 'tenants/' || batch.tenant_id || '/ingest/' || batch.folder || '/' || upload.object_key AS key,
    1 AS required FROM (SELECT * FROM ingest_uploads) AS upload JOIN ingest_batches AS batch ON batch.id = upload.batch_id
    WHERE upload.status = 'completed' AND batch.status = 'open'`,
] as const;
const PREFIXES =
  "SELECT id, media_prefix AS key, 1 AS required FROM assets WHERE provider = 'managed' AND media_prefix IS NOT NULL";

/** Every object that a row of the database in `file` names by its key. Reads a page at a time. */
export function* namedObjects(file: string): Generator<Named> {
  for (const sql of KEYS) yield* rowsOf(file, sql);
}

/** The same, and what lies in the folders that rows name: playlists and segments. */
export async function* referencedObjects(
  file: string,
  objects: ObjectStore,
): AsyncGenerator<Named & { bytes: number | null }> {
  for (const named of namedObjects(file)) yield { ...named, bytes: null };
  for (const { key: prefix } of rowsOf(file, PREFIXES)) {
    let cursor: string | null = null;
    do {
      const page = await objects.list(prefix, { limit: LISTED, ...(cursor !== null && { cursor }) });
      for (const { key, bytes } of page.objects) yield { key, bytes, required: true };
      cursor = page.cursor;
    } while (cursor !== null);
  }
}

function* rowsOf(file: string, sql: string): Generator<Named> {
  const database = new Sqlite(file, { readonly: true } as Sqlite.Options);
  try {
    const id = sql.includes("upload.id") ? "upload.id" : "id";
    const statement = database.prepare(`${sql} AND ${id} > ? ORDER BY ${id} LIMIT ${PAGE}`);
    for (let after = 0; ; ) {
      const rows = statement.all([after]) as { id: number; key: string; required: number }[];
      for (const { key, required } of rows) yield { key, required: required === 1 };
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE) return;
      after = last.id;
    }
  } finally {
    database.close();
  }
}
