import { and, asc, eq, gt, isNotNull, isNull, ne, sql } from "drizzle-orm";
import {
  assets,
  ingestBatches,
  objectGarbage,
  transcodingAttempts,
  transcodingJobs,
  uploads,
} from "../../../../storage/db/schema.ts";
import type { App } from "../../../app.ts";
import { backgroundPacer } from "../../../lib/pace.ts";
import { imagesFolder } from "../../assets/change.ts";
import { prefixOf } from "../../ingest/queries.ts";
import { attemptPrefix } from "../../jobs/lease.ts";
import { REFERENCE_QUERIES, REFERENCED_FOLDERS } from "../backup/references.ts";
import type { ReferenceIndex } from "./reference-index.ts";

const PAGE = 1000;

/**
 * Writes down all that rows name: what a backup would hold, and what is under way or is about to be removed by itself
 * (uploads, attempts, batches, pictures, what is noted as unwanted). A page at a time; throws what `signal` says.
 */
export async function collectReferences(app: App, notes: ReferenceIndex, signal: AbortSignal): Promise<void> {
  const pace = backgroundPacer();
  const each = async <R>(pages: AsyncGenerator<R[]>, note: (row: R) => void) => {
    for await (const rows of pages) {
      signal.throwIfAborted();
      for (const row of rows) {
        note(row);
        await pace();
      }
    }
  };
  for (const { kind, id, sql: select } of REFERENCE_QUERIES)
    await each(rawPages<NamedRow>(app, select, id), ({ id: row, asset, key, required }) =>
      notes.name({ key, kind, row, asset, required: required === 1 }),
    );
  await each(rawPages<NamedRow>(app, REFERENCED_FOLDERS, "id"), ({ key }) => notes.folder(key));
  await each(underWay(app), ({ id, key }) =>
    key.endsWith("/") ? notes.folder(key) : notes.name({ key, kind: "upload", row: id, asset: null, required: false }),
  );
}

type NamedRow = { id: number; asset: number | null; key: string; required: number };
type Place = { id: number; key: string };

async function* rawPages<R extends { id: number }>({ db }: App, select: string, id: string): AsyncGenerator<R[]> {
  yield* paged<R>((after) =>
    db.all<R>(sql`${sql.raw(select)} and ${sql.raw(id)} > ${after} order by ${sql.raw(id)} limit ${PAGE}`),
  );
}

async function* underWay(app: App): AsyncGenerator<Place[]> {
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
  yield* mapped(attempts(app, eq(transcodingJobs.status, "running")), ({ id, job }) => attemptPrefix(job, id));
  const unswept = and(isNull(transcodingAttempts.sweptAt), ne(transcodingAttempts.outcome, "completed"));
  yield* mapped(attempts(app, unswept), ({ id, job }) => attemptPrefix(job, id));
  const batches = (which: ReturnType<typeof and>) =>
    paged((after) =>
      db
        .select({ id: ingestBatches.id, tenantId: ingestBatches.tenantId, folder: ingestBatches.folder })
        .from(ingestBatches)
        // The sign keeps the narrow index: by their ids, all that ever were would be read.
        .where(and(which, sql`+${ingestBatches.id} > ${after}`))
        .orderBy(sql`+${ingestBatches.id}`)
        .limit(PAGE)
        .all(),
    );
  yield* mapped(batches(eq(ingestBatches.status, "open")), prefixOf);
  yield* mapped(batches(and(ne(ingestBatches.status, "open"), isNull(ingestBatches.sweptAt))), prefixOf);
  const ready = paged((after) =>
    db
      .select({
        ...{ id: assets.id, tenantId: assets.tenantId, mediaPrefix: assets.mediaPrefix },
        ...{ thumbnailPath: assets.thumbnailPath, readyAt: assets.readyAt },
      })
      .from(assets)
      .where(and(gt(assets.id, after), isNotNull(assets.readyAt)))
      .orderBy(asc(assets.id))
      .limit(PAGE)
      .all(),
  );
  yield* mapped(ready, imagesFolder);
  for (let after = ""; ; ) {
    const rows = await db
      .select({ key: objectGarbage.objectKey })
      .from(objectGarbage)
      .where(gt(objectGarbage.objectKey, after))
      .orderBy(asc(objectGarbage.objectKey))
      .limit(PAGE)
      .all();
    yield rows.map(({ key }) => ({ id: 0, key }));
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = last.key;
  }
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
  for await (const rows of pages) yield rows.map((row): Place => ({ id: row.id, key: keyOf(row) }));
}

async function* paged<R extends { id: number }>(read: (after: number) => Promise<R[]>): AsyncGenerator<R[]> {
  for (let after = 0; ; ) {
    const rows = await read(after);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = last.id;
  }
}
