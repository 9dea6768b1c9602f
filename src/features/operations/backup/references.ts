import Sqlite from "libsql";
import { batchPrefixSql } from "#model/object-keys.ts";
import { rowsOf } from "#storage/db/pages.ts";
import { listAll } from "#storage/objects/list-all.ts";
import type { ObjectStore } from "#storage/objects/store.ts";

const PAGE = 1000;

/** `required` when the object existed when the row was written. */
type Named = { key: string; required: boolean };

export type ReferenceKind =
  | "source"
  | "manifest"
  | "dash"
  | "thumbnail"
  | "poster"
  | "storyboard"
  | "mp4"
  | "subtitle"
  | "delivery";
/** `sql` selects id, asset (null for a delivery), key and required; ` AND <id> > ?` can be appended. */
export type ReferenceQuery = { kind: ReferenceKind; id: string; sql: string };

const ofAssets = (kind: ReferenceKind, column: string): ReferenceQuery => ({
  kind,
  id: "id",
  sql: `SELECT id, id AS asset, ${column} AS key, 1 AS required FROM assets WHERE provider = 'managed' AND ${column} IS NOT NULL`,
});

/** All columns that reference single objects: the one list of them, for backups and for consistency checks. */
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
  ofAssets("poster", "poster_path"),
  ofAssets("storyboard", "storyboard_path"),
  ofAssets("mp4", "mp4_path"),
  {
    kind: "subtitle",
    id: "id",
    // A subtitle without a text has no object.
    sql: "SELECT id, asset_id AS asset, object_key AS key, status NOT IN ('failed', 'pending') AS required FROM subtitles WHERE true",
  },
  {
    kind: "delivery",
    id: "upload.id",
    sql: `SELECT upload.id, NULL AS asset,
      ${batchPrefixSql("batch.tenant_id", "batch.folder")} || upload.object_key AS key, 1 AS required
      FROM (SELECT * FROM ingest_uploads) AS upload JOIN ingest_batches AS batch ON batch.id = upload.batch_id
      WHERE upload.status = 'completed' AND batch.status = 'open'`,
  },
];
/** Prefixes: all objects under one belong to the row. Those of shared media are pruned by the garbage collection. */
export const REFERENCED_FOLDERS: readonly string[] = [
  ...["media_prefix", "shared_prefix"].map(
    (column) =>
      `SELECT id, ${column} AS key, 1 AS required FROM assets WHERE provider = 'managed' AND ${column} IS NOT NULL`,
  ),
  // Added audio tracks.
  "SELECT id, prefix AS key, 1 AS required FROM audio_tracks WHERE prefix IS NOT NULL AND status = 'ready'",
  // The manifests that the job of an exact trim starts from; it may be retried.
  `SELECT id, clip ->> '$.prefix' AS key, 1 AS required FROM transcoding_jobs
    WHERE clip ->> '$.trim' IS NOT NULL AND status <> 'completed'`,
];

/** Every object that a row of the database in `file` references by key. Reads page by page. */
export function* namedObjects(file: string): Generator<Named> {
  for (const { sql, id } of REFERENCE_QUERIES) yield* namedIn(file, sql, id);
}

/** The same, and all objects under the prefixes that rows reference: playlists and segments. */
export async function* referencedObjects(
  file: string,
  objects: ObjectStore,
): AsyncGenerator<Named & { bytes: number | null }> {
  for (const named of namedObjects(file)) yield { ...named, bytes: null };
  for (const sql of REFERENCED_FOLDERS)
    for (const { key: prefix } of namedIn(file, sql, "id"))
      for await (const { key, bytes } of listAll(objects, prefix)) yield { key, bytes, required: true };
}

function* namedIn(file: string, sql: string, id: string): Generator<Named> {
  const database = new Sqlite(file, { readonly: true } as Sqlite.Options);
  try {
    const statement = database.prepare(`${sql} AND ${id} > ? ORDER BY ${id} LIMIT ${PAGE}`);
    const read = (after: number) => statement.all([after]) as { id: number; key: string; required: number }[];
    for (const { key, required } of rowsOf({ from: 0, limit: PAGE, keyOf: (row) => row.id }, read))
      yield { key, required: required === 1 };
  } finally {
    database.close();
  }
}
