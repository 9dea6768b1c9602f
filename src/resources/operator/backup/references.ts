import Sqlite from "libsql";
import type { ObjectStore } from "../../../../storage/objects/store.ts";

const PAGE = 1000;
/** A local store reads a whole folder for each page. */
const LISTED = 10_000;

/** `required` where whoever made the row had seen the object. */
type Named = { key: string; required: boolean };

export type ReferenceKind =
  | "source"
  | "manifest"
  | "dash"
  | "thumbnail"
  | "storyboard"
  | "mp4"
  | "subtitle"
  | "delivery";
/** `sql` gives id, asset (of a delivery: none), key and required; ` AND <id> > ?` can stand behind it. */
export type ReferenceQuery = { kind: ReferenceKind; id: string; sql: string };

const ofAssets = (kind: ReferenceKind, column: string): ReferenceQuery => ({
  kind,
  id: "id",
  sql: `SELECT id, id AS asset, ${column} AS key, 1 AS required FROM assets WHERE provider = 'managed' AND ${column} IS NOT NULL`,
});

/** Single objects that rows name: the one list of them, for backups and for who looks whether they are all there. */
export const REFERENCE_QUERIES: readonly ReferenceQuery[] = [
  {
    kind: "source",
    id: "id",
    sql: `SELECT id, id AS asset, source_key AS key, input_status = 'uploaded' AS required FROM assets
      WHERE provider = 'managed' AND source_key <> ''`,
  },
  ofAssets("manifest", "manifest_path"),
  ofAssets("dash", "dash_manifest_path"),
  ofAssets("thumbnail", "thumbnail_path"),
  ofAssets("storyboard", "storyboard_path"),
  ofAssets("mp4", "mp4_path"),
  {
    kind: "subtitle",
    id: "id",
    // One that failed is known to have no text.
    sql: "SELECT id, asset_id AS asset, object_key AS key, status <> 'failed' AS required FROM subtitles WHERE true",
  },
  {
    kind: "delivery",
    id: "upload.id",
    sql: `SELECT upload.id, NULL AS asset,
      'tenants/' || batch.tenant_id || '/ingest/' || batch.folder || '/' || upload.object_key AS key, 1 AS required
      FROM (SELECT * FROM ingest_uploads) AS upload JOIN ingest_batches AS batch ON batch.id = upload.batch_id
      WHERE upload.status = 'completed' AND batch.status = 'open'`,
  },
];
/** Folders: all that lies in one belongs to the row. */
export const REFERENCED_FOLDERS =
  "SELECT id, media_prefix AS key, 1 AS required FROM assets WHERE provider = 'managed' AND media_prefix IS NOT NULL";

/** Every object that a row of the database in `file` names by its key. Reads a page at a time. */
export function* namedObjects(file: string): Generator<Named> {
  for (const { sql, id } of REFERENCE_QUERIES) yield* rowsOf(file, sql, id);
}

/** The same, and what lies in the folders that rows name: playlists and segments. */
export async function* referencedObjects(
  file: string,
  objects: ObjectStore,
): AsyncGenerator<Named & { bytes: number | null }> {
  for (const named of namedObjects(file)) yield { ...named, bytes: null };
  for (const { key: prefix } of rowsOf(file, REFERENCED_FOLDERS, "id")) {
    let cursor: string | null = null;
    do {
      const page = await objects.list(prefix, { limit: LISTED, ...(cursor !== null && { cursor }) });
      for (const { key, bytes } of page.objects) yield { key, bytes, required: true };
      cursor = page.cursor;
    } while (cursor !== null);
  }
}

function* rowsOf(file: string, sql: string, id: string): Generator<Named> {
  const database = new Sqlite(file, { readonly: true } as Sqlite.Options);
  try {
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
