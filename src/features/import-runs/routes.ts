import { eq } from "drizzle-orm";
import * as v from "valibot";
import { HttpError } from "#lib/base";
import { byId, page } from "#platform/http/paging.ts";
import { toColumns } from "#platform/http/records.ts";
import { route } from "#platform/http/route.ts";
import { importRuns } from "#storage/db/schema.ts";
import { requireTenant } from "../tenants/queries.ts";
import { forgetOldRuns, listImportRuns, requireImportRun } from "./queries.ts";
import {
  ImportRun,
  ImportRunDetails,
  ImportRunParams,
  ImportRunPatch,
  ImportRunQuery,
  ImportRunWrite,
  toImportRun,
  toImportRunDetails,
} from "./schema.ts";

const path = "/api/v1/import_runs";
const tag = "Imports";
const reads = { tag, scope: "assets:read" } as const;
const writes = { tag, scope: "assets:write" } as const;
const one = { path: `${path}/:id`, params: ImportRunParams } as const;

/** `vodbox import` reports its progress here; people read it in the console. */
export const importRunRoutes = [
  route({
    ...reads,
    method: "GET",
    path,
    operationId: "listImportRuns",
    summary: "List imports from other platforms, newest first",
    query: ImportRunQuery,
    responses: { 200: v.array(ImportRun) },
    handle(context) {
      const { app, caller, query } = context;
      const batches = byId(query.cursor, (after, limit) =>
        listImportRuns(app.db, caller, { after, limit, tenantId: query.tenant_id }),
      );
      return page(context, { batches, toWire: (row) => toImportRun(row, app.clock.now()) });
    },
  }),
  route({
    ...writes,
    method: "POST",
    path,
    operationId: "createImportRun",
    summary: "Begin to report an import; the newest 50 are kept",
    body: ImportRunWrite,
    idempotent: {},
    responses: { 201: ImportRun },
    errors: { 404: ["not_found"], 422: ["idempotency_key_reused"] },
    handle: ({ app, caller, body: { tenant_id, ...fields }, commit }) =>
      commit(async (tx) => {
        const { id: tenantId } = await requireTenant(tx, caller, tenant_id);
        const now = app.clock.now();
        const row = await tx
          .insert(importRuns)
          .values({ ...fields, tenantId, problems: [], createdAt: now, updatedAt: now })
          .returning()
          .get();
        await forgetOldRuns(tx, tenantId);
        return toImportRun(row, now);
      }),
  }),
  route({
    ...one,
    ...reads,
    method: "GET",
    operationId: "getImportRun",
    summary: "Get an import with its problems",
    responses: { 200: ImportRunDetails },
    handle: async ({ app, caller, params }) =>
      toImportRunDetails(await requireImportRun(app.db, caller, params.id), app.clock.now()),
  }),
  route({
    ...one,
    ...writes,
    method: "PATCH",
    // Every few seconds, by a program.
    audited: false,
    operationId: "updateImportRun",
    summary: "Report the progress of an import, or its end",
    body: ImportRunPatch,
    responses: { 200: ImportRun },
    errors: { 409: ["import_run_ended"] },
    handle: ({ app, caller, params, body }) =>
      app.write(async (tx) => {
        const { id, status } = await requireImportRun(tx, caller, params.id);
        if (status !== "running")
          throw new HttpError(409, "import_run_ended", "This import has ended; a repeated one is a new run.");
        const now = app.clock.now();
        const endedAt = body.status === undefined || body.status === "running" ? null : now;
        const set = { ...toColumns(body), endedAt, updatedAt: now };
        return toImportRun(await tx.update(importRuns).set(set).where(eq(importRuns.id, id)).returning().get(), now);
      }),
  }),
  route({
    ...one,
    ...writes,
    method: "DELETE",
    operationId: "deleteImportRun",
    summary: "Delete the report of an import; what it imported stays",
    responses: { 204: null },
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const { id } = await requireImportRun(tx, caller, params.id);
        await tx.delete(importRuns).where(eq(importRuns.id, id));
      }),
  }),
];
