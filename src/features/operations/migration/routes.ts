import * as v from "valibot";
import type { App } from "#app.ts";
import { alternatives, HttpError, invalid, iso, UserError } from "#lib/base";
import { STORE_KINDS, type StoreKind } from "#model/enums.ts";
import { Reply, route } from "#platform/http/route.ts";
import { NullableTime } from "#platform/http/schemas.ts";
import { storageOf } from "#platform/http/storage.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  BytesField,
  DryRun,
  ErrorField,
  FinishedAt,
  ObjectsField,
  StartedAt,
  ToField,
} from "#protocol/record-fields.ts";
import { STORAGE_PHASES, type StorageLocationRow, storageLocation } from "#storage/db/schema.ts";
import { otherServers } from "../system/servers.ts";
import { waitingFor } from "./in-progress.ts";
import { continueMigration, estimate, liveOf, pauseMigration } from "./run.ts";
import { setStorageLocation, storageLocationOf } from "./storage-location.ts";

const path = "/api/v1/admin/storage/migration";
const shared = { credential: "admin", tag: "Operator" } as const;
const Kind = v.picklist(STORE_KINDS, `must be ${alternatives(STORE_KINDS)}`);

const Start = v.object({
  to: describedAs(ToField, Kind),
  quick: v.optional(v.pipe(v.boolean("must be true or false"), v.description("Verify sizes only")), false),
  dry_run: describedAs(DryRun, v.optional(v.boolean("must be true or false"), false)),
});
const Amount = v.object({ objects: ObjectsField, bytes: BytesField });
const Migration = v.pipe(
  v.object({
    active: v.pipe(Kind, v.description("Storage of new objects")),
    configured: v.pipe(v.string(), v.description("Whether it is configured")),
    phase: v.pipe(v.picklist(STORAGE_PHASES), v.description("Phase of the migration")),
    to: v.pipe(v.nullable(Kind), v.description("Storage that the objects are copied to")),
    paused: v.pipe(v.boolean(), v.description("Whether it is paused")),
    running: v.pipe(v.boolean(), v.description("Whether it is in progress")),
    quick: v.pipe(v.boolean(), v.description("Whether only sizes are compared")),
    total: v.pipe(v.nullable(Amount), v.description("All objects")),
    done: v.pipe(Amount, v.description("In the pass of this phase")),
    copied: v.pipe(Amount, v.description("Objects that were copied")),
    verified: v.pipe(v.number(), v.description("Objects that were read back and compared")),
    fixed: v.pipe(v.number(), v.description("Objects that differed when verified and were copied again")),
    waiting_for: v.pipe(
      v.object({
        uploads: v.pipe(v.number(), v.description("Open uploads")),
        jobs: v.pipe(v.number(), v.description("Queued and running jobs")),
        batches: v.pipe(v.number(), v.description("Open batch uploads")),
      }),
      v.description("Started before the switch; they complete in the old storage"),
    ),
    old_copies: v.pipe(v.nullable(Kind), v.description("Copies that are left in the other storage")),
    error: v.nullable(ErrorField),
    started_at: v.nullable(StartedAt),
    switched_at: v.pipe(NullableTime, v.description("Time at which the new storage was put into use; null before")),
    finished_at: v.nullable(FinishedAt),
  }),
  v.title("StorageMigration"),
);
const Estimate = v.object({
  to: describedAs(ToField, Kind),
  objects: ObjectsField,
  bytes: BytesField,
  objects_there: v.pipe(v.number(), v.description("Objects that are already in the other storage")),
  bytes_there: v.pipe(v.number(), v.description("Bytes that are already in the other storage")),
});

const conflict = (message: string): never => {
  throw new HttpError(409, "migration_conflict", message);
};

async function stateOf(app: App): Promise<v.InferInput<typeof Migration>> {
  const objects = storageOf(app);
  const row = await storageLocationOf(app.db);
  const live = liveOf(app);
  const { active = objects.kind, other = null, phase = "settled" } = row ?? {};
  const counts = live.counts ?? row;
  const isSwitched = phase === "draining" || phase === "switching";
  return {
    active,
    configured: app.config.storage,
    phase,
    to: isSwitched ? active : phase === "settled" || phase === "cleaning" ? null : other,
    paused: row?.paused ?? false,
    running: live.running,
    quick: row?.quick ?? false,
    total: row?.objectsTotal == null ? null : { objects: row.objectsTotal, bytes: row.bytesTotal ?? 0 },
    done: { objects: counts?.objectsDone ?? 0, bytes: counts?.bytesDone ?? 0 },
    copied: { objects: counts?.objectsCopied ?? 0, bytes: counts?.bytesCopied ?? 0 },
    verified: counts?.objectsVerified ?? 0,
    fixed: counts?.objectsFixed ?? 0,
    waiting_for: isSwitched ? await waitingFor(app, row?.switchedAt ?? 0) : { uploads: 0, jobs: 0, batches: 0 },
    old_copies: phase === "settled" || phase === "cleaning" ? other : null,
    error: row?.error ?? null,
    started_at: iso(row?.startedAt ?? null),
    switched_at: iso(row?.switchedAt ?? null),
    finished_at: iso(row?.finishedAt ?? null),
  };
}

/** Checks that the store's settings are complete, and that it accepts and returns objects. */
async function requireStore(app: App, kind: StoreKind): Promise<void> {
  try {
    await (await app.openStore(kind)).check();
  } catch (error) {
    if (error instanceof UserError) return invalid("to", error.message);
    throw error;
  }
}

async function begin(app: App, to: StoreKind, quick: boolean): Promise<void> {
  const row = await storageLocationOf(app.db);
  const active = row?.active ?? storageOf(app).kind;
  const phase = row?.phase ?? "settled";
  const isSwitched = phase === "draining" || phase === "switching";
  if (phase === "cleaning") conflict("Old copies are being deleted; wait until this has completed.");
  if (phase === "settled") {
    if (to === active) return;
    await requireAlone(app);
    await requireStore(app, to);
    await create(app, active, to, quick);
  } else if (to !== (isSwitched ? active : row?.other)) {
    conflict(
      isSwitched
        ? `Storage was switched to ${active} and the remaining objects are still being copied; migrate back when this has completed.`
        : `Objects are being copied from ${active} to ${row?.other} storage; to stay with ${active}, cancel that.`,
    );
  } else {
    await requireStore(app, to);
    await setStorageLocation(app, { paused: false, error: null });
  }
}

/** Each process has its own active store; the others would continue to write to the old one. */
async function requireAlone(app: App): Promise<void> {
  if (app.peers) conflict("This server runs several processes; start it with --processes 1 to migrate.");
  const others = await otherServers(app.db, app);
  if (others.length > 0)
    conflict(
      `${others.length} other servers use this database (${others.map(({ host }) => host).join(", ")}); stop them first.`,
    );
}

async function create(app: App, active: StoreKind, other: StoreKind, quick: boolean): Promise<void> {
  const now = app.clock.now();
  const fresh: StorageLocationRow = {
    id: 1,
    active,
    other,
    phase: "copying",
    paused: false,
    quick,
    afterKey: "",
    objectsTotal: null,
    bytesTotal: null,
    objectsDone: 0,
    bytesDone: 0,
    objectsCopied: 0,
    bytesCopied: 0,
    objectsVerified: 0,
    objectsFixed: 0,
    error: null,
    startedAt: now,
    switchedAt: null,
    finishedAt: null,
    updatedAt: now,
  };
  await app.write(async (tx) =>
    tx.insert(storageLocation).values(fresh).onConflictDoUpdate({ target: storageLocation.id, set: fresh }),
  );
}

/** Phases that exist only before the switch. */
async function requireCopying(app: App): Promise<StorageLocationRow> {
  const row = await storageLocationOf(app.db);
  if (row?.phase === "copying" || row?.phase === "verifying") return row;
  return conflict(
    row && row.phase !== "settled"
      ? `The migration is ${row.phase} and can no longer be stopped.`
      : "No migration is in progress.",
  );
}

/** Not awaited: the response confirms the start. Errors are recorded in the row. */
const kick = (app: App) => void continueMigration(app).catch((err) => app.log.error({ err }, "a migration failed"));

export const migrationRoutes = [
  route({
    ...shared,
    method: "GET",
    path,
    operationId: "getMigration",
    summary: "Get the storage in use and the progress of a migration",
    responses: { 200: Migration },
    errors: { 503: ["storage_not_configured"] },
    handle: ({ app }) => stateOf(app),
  }),
  route({
    ...shared,
    method: "POST",
    path,
    operationId: "startMigration",
    summary: "Start or resume a migration to the other storage",
    body: Start,
    responses: { 200: Estimate, 202: Migration },
    errors: { 409: ["migration_conflict"], 503: ["storage_not_configured"] },
    async handle({ app, body: { to, quick, dry_run } }) {
      const { kind } = storageOf(app);
      if (dry_run) {
        await requireStore(app, to);
        const from = (await storageLocationOf(app.db))?.active ?? kind;
        return new Reply(200, { to, ...(await estimate(app, from, to)) });
      }
      await begin(app, to, quick);
      kick(app);
      return new Reply(202, await stateOf(app));
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${path}/pause`,
    operationId: "pauseMigration",
    summary: "Pause a migration",
    responses: { 200: Migration },
    errors: { 409: ["migration_conflict"], 503: ["storage_not_configured"] },
    async handle({ app }) {
      storageOf(app);
      await requireCopying(app);
      await setStorageLocation(app, { paused: true });
      await pauseMigration(app);
      return stateOf(app);
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${path}/cancel`,
    operationId: "cancelMigration",
    summary: "Cancel a migration before it switches storage",
    responses: { 200: Migration },
    errors: { 409: ["migration_conflict"], 503: ["storage_not_configured"] },
    async handle({ app }) {
      const objects = storageOf(app);
      await requireCopying(app);
      await setStorageLocation(app, { paused: true });
      await pauseMigration(app);
      // The migration may have switched just before this.
      const row = await requireCopying(app);
      await setStorageLocation(app, { phase: "settled", paused: false, error: null });
      objects.use(await app.openStore(row.active));
      return stateOf(app);
    },
  }),
  route({
    ...shared,
    method: "DELETE",
    path: `${path}/old_copies`,
    operationId: "deleteOldCopies",
    summary: "Delete the copies that a migration left in the other storage",
    responses: { 202: Migration },
    errors: { 409: ["migration_conflict"], 503: ["storage_not_configured"] },
    async handle({ app }) {
      storageOf(app);
      const row = await storageLocationOf(app.db);
      if (row?.phase !== "cleaning") {
        if (row?.phase !== "settled" || row.other === null) return conflict("There are no old copies to delete.");
        await requireStore(app, row.other);
      }
      await setStorageLocation(app, { phase: "cleaning", paused: false, error: null });
      kick(app);
      return new Reply(202, await stateOf(app));
    },
  }),
];
