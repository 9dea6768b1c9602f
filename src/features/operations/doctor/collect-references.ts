import { and, asc, eq, gt, isNotNull, isNull, ne, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { imagesFolder } from "#features/assets/images-folder.ts";
import { backgroundPacer } from "#lib/base";
import { attemptPrefix, batchPrefix, isPrefix } from "#model/object-keys.ts";
import { pagesOf } from "#storage/db/pages.ts";
import {
  assets,
  objectGarbage,
  transcodingAttempts,
  transcodingJobs,
  uploadBatches,
  uploads,
} from "#storage/db/schema.ts";
import { REFERENCE_QUERIES, REFERENCED_FOLDERS } from "../backup/references.ts";
import type { ReferenceIndex } from "./reference-index.ts";

const PAGE = 1000;

/**
 * Records everything that rows reference: what a backup would contain, plus objects that are in progress or about to be
 * deleted (uploads, attempts, batches, images, garbage). Page by page; throws the reason of `signal`.
 */
export async function collectReferences(app: App, index: ReferenceIndex, signal: AbortSignal): Promise<void> {
  const pace = backgroundPacer();
  const each = async <R>(pages: AsyncGenerator<R[]>, record: (row: R) => void) => {
    for await (const rows of pages) {
      signal.throwIfAborted();
      for (const row of rows) {
        record(row);
        await pace();
      }
    }
  };
  for (const { kind, id, sql: select } of REFERENCE_QUERIES)
    await each(rawPages<NamedRow>(app, select, id), ({ id: row, asset, key, required }) =>
      index.name({ key, kind, row, asset, required: required === 1 }),
    );
  for (const select of REFERENCED_FOLDERS)
    await each(rawPages<NamedRow>(app, select, "id"), ({ key }) => index.folder(key));
  await each(underWay(app), ({ id, key }) =>
    isPrefix(key) ? index.folder(key) : index.name({ key, kind: "upload", row: id, asset: null, required: false }),
  );
}

type NamedRow = { id: number; asset: number | null; key: string; required: number };
type ReferenceRow = { id: number; key: string };

async function* rawPages<R extends { id: number }>({ db }: App, select: string, id: string): AsyncGenerator<R[]> {
  yield* paged<R>((after) =>
    db.all<R>(sql`${sql.raw(select)} and ${sql.raw(id)} > ${after} order by ${sql.raw(id)} limit ${PAGE}`),
  );
}

async function* underWay(app: App): AsyncGenerator<ReferenceRow[]> {
  const { db } = app;
  yield* paged((after) =>
    db
      .select({ id: uploads.id, key: uploads.objectKey })
      .from(uploads)
      .where(and(gt(uploads.id, after), sql`${uploads.status} in ('pending', 'completed')`))
      .orderBy(asc(uploads.id))
      .limit(PAGE)
      .all(),
  );
  // Files of audio tracks that wait for a worker, and what it writes.
  yield* paged((after) =>
    db.all<ReferenceRow>(sql`select id, source_key as key from audio_tracks
      where source_key is not null and id > ${after} order by id limit ${PAGE}`),
  );
  yield* paged((after) =>
    db.all<ReferenceRow>(sql`select id, prefix as key from audio_tracks
      where prefix is not null and status = 'processing' and id > ${after} order by id limit ${PAGE}`),
  );
  // What workers write of captions.
  yield* paged((after) =>
    db.all<ReferenceRow>(sql`select id, prefix as key from caption_jobs
      where prefix is not null and status = 'running' and id > ${after} order by id limit ${PAGE}`),
  );
  yield* mapped(attempts(app, eq(transcodingJobs.status, "running")), ({ id, job }) => attemptPrefix(job, id));
  const unswept = and(isNull(transcodingAttempts.sweptAt), ne(transcodingAttempts.outcome, "completed"));
  yield* mapped(attempts(app, unswept), ({ id, job }) => attemptPrefix(job, id));
  const batches = (which: ReturnType<typeof and>) =>
    paged((after) =>
      db
        .select({ id: uploadBatches.id, tenantId: uploadBatches.tenantId, folder: uploadBatches.folder })
        .from(uploadBatches)
        // The unary plus keeps SQLite on the narrow index; by id it would read all rows that ever existed.
        .where(and(which, sql`+${uploadBatches.id} > ${after}`))
        .orderBy(sql`+${uploadBatches.id}`)
        .limit(PAGE)
        .all(),
    );
  yield* mapped(batches(eq(uploadBatches.status, "open")), batchPrefix);
  yield* mapped(batches(and(ne(uploadBatches.status, "open"), isNull(uploadBatches.sweptAt))), batchPrefix);
  const ready = paged((after) =>
    db
      .select({
        id: assets.id,
        tenantId: assets.tenantId,
        mediaPrefix: assets.mediaPrefix,
        thumbnailPath: assets.thumbnailPath,
        posterPath: assets.posterPath,
        readyAt: assets.readyAt,
      })
      .from(assets)
      .where(and(gt(assets.id, after), isNotNull(assets.readyAt)))
      .orderBy(asc(assets.id))
      .limit(PAGE)
      .all(),
  );
  yield* mapped(ready, imagesFolder);
  const garbage = pagesOf({ from: "", limit: PAGE, keyOf: (row: { key: string }) => row.key }, (after) =>
    db
      .select({ key: objectGarbage.objectKey })
      .from(objectGarbage)
      .where(gt(objectGarbage.objectKey, after))
      .orderBy(asc(objectGarbage.objectKey))
      .limit(PAGE)
      .all(),
  );
  for await (const rows of garbage) yield rows.map(({ key }) => ({ id: 0, key }));
}

const attempts = ({ db }: App, which: ReturnType<typeof and>) =>
  paged((after) =>
    db
      .select({ id: transcodingAttempts.id, job: transcodingJobs })
      .from(transcodingAttempts)
      .innerJoin(transcodingJobs, eq(transcodingJobs.id, transcodingAttempts.jobId))
      .where(and(which, sql`+${transcodingAttempts.id} > ${after}`))
      .orderBy(sql`+${transcodingAttempts.id}`)
      .limit(PAGE)
      .all(),
  );

async function* mapped<R extends { id: number }>(pages: AsyncGenerator<R[]>, keyOf: (row: R) => string) {
  for await (const rows of pages) yield rows.map((row): ReferenceRow => ({ id: row.id, key: keyOf(row) }));
}

const paged = <R extends { id: number }>(read: (after: number) => Promise<R[]>): AsyncGenerator<R[]> =>
  pagesOf({ from: 0, limit: PAGE, keyOf: (row: R) => row.id }, read);
