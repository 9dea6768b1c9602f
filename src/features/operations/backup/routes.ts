import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { FastResponse } from "srvx";
import * as v from "valibot";
import type { App } from "#app.ts";
import { iso, notFound } from "#lib/base";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { endHold, HOLD_MS, renewHold, takeHold } from "#platform/http/removal-hold.ts";
import { Reply, route } from "#platform/http/route.ts";
import { Text } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CreatedAt,
  ExpiresAt,
  ExpiresIn,
  FinishedAt,
  RecordId,
  StartedAt,
  StatusField,
} from "#protocol/record-fields.ts";
import { type BackupRun, backupPath, lastRun, serverBackups, startBackup, writtenBytes } from "./server-backups.ts";

const admin = { credential: "admin", tag: "Operator" } as const;
const Hold = v.object({ id: RecordId, expires_at: describedAs(ExpiresAt, v.string()), expires_in: ExpiresIn });
const toHold = ({ id, expiresAt }: { id: number; expiresAt: number }) => ({
  id,
  expires_at: new Date(expiresAt).toISOString(),
  expires_in: HOLD_MS / 1000,
});
const params = v.object({ id: RecordIdInPath });

const path = "/api/v1/admin/backups";
const Name = v.pipe(Text(100), v.description("File name of the backup"));
const named = v.object({ name: Name });
const BackupRunBody = v.object({
  name: Name,
  status: describedAs(StatusField, v.picklist(["running", "done", "failed"])),
  bytes: v.pipe(v.number(), v.description("Bytes written so far; 0 when it does not run")),
  error: v.pipe(v.nullable(v.string()), v.description("Why it failed; null otherwise")),
  started_at: StartedAt,
  finished_at: v.nullable(FinishedAt),
});
const BackupFileBody = v.object({
  name: Name,
  bytes: v.pipe(v.number(), v.description("Size of the archive")),
  created_at: CreatedAt,
});
/** Files are not in the database: this commits the audit entry of the call alone, before its effect. */
const record = (app: App) => app.write(async () => {});
const toRun = async (app: App, run: BackupRun) => ({
  name: run.name,
  status: run.status,
  error: run.error,
  bytes: run.status === "running" ? await writtenBytes(app, run) : 0,
  started_at: iso(run.startedAt),
  finished_at: iso(run.finishedAt),
});

export const backupRoutes = [
  route({
    ...admin,
    method: "GET",
    path,
    operationId: "listBackups",
    summary: "List the backups in the data directory, newest first, and the last run",
    responses: {
      200: v.object({
        last: v.pipe(v.nullable(BackupRunBody), v.description("The run in progress, or the last one since the start")),
        backups: v.pipe(v.array(BackupFileBody), v.description("Complete archives")),
      }),
    },
    async handle({ app }) {
      const [run, files] = await Promise.all([lastRun(app), serverBackups(app)]);
      return {
        last: run && (await toRun(app, run)),
        backups: files.map(({ name, bytes, createdAt }) => ({ name, bytes, created_at: iso(createdAt) })),
      };
    },
  }),
  route({
    ...admin,
    method: "POST",
    path,
    operationId: "startBackup",
    summary: "Start a backup of database and secrets, optionally with all objects, into the data directory",
    body: v.object({
      objects: v.optional(v.pipe(v.boolean(), v.description("Whether stored objects are included")), false),
    }),
    responses: { 202: BackupRunBody },
    errors: { 409: ["backup_running"] },
    async handle({ app, body }) {
      const run = await startBackup(app, body);
      await record(app);
      return new Reply(202, await toRun(app, run));
    },
  }),
  route({
    ...admin,
    method: "GET",
    path: `${path}/:name`,
    operationId: "downloadBackup",
    audited: true,
    summary: "Download a backup; it contains the secrets of the server",
    params: named,
    produces: ["application/zstd"],
    responses: { 200: v.string() },
    errors: { 404: ["not_found"] },
    async handle({ app, params: { name }, method }) {
      const file = await backupPath(app, name);
      await record(app);
      const headers = {
        "content-type": "application/zstd",
        "content-length": String(file.bytes),
        "content-disposition": `attachment; filename="${name}"`,
        "cache-control": "no-store",
      };
      const body = method === "HEAD" ? null : (createReadStream(file.path) as unknown as ReadableStream);
      return new FastResponse(body, { headers });
    },
  }),
  route({
    ...admin,
    method: "DELETE",
    path: `${path}/:name`,
    operationId: "deleteBackup",
    summary: "Delete a backup",
    params: named,
    responses: { 204: null },
    errors: { 404: ["not_found"] },
    async handle({ app, params: { name } }) {
      const { path: archive } = await backupPath(app, name);
      await record(app);
      await rm(archive, { force: true });
      return new Reply(204, undefined);
    },
  }),
  route({
    ...admin,
    method: "POST",
    path: "/api/v1/admin/removal_holds",
    operationId: "createRemovalHold",
    summary: "Hold deletions from storage while a backup copies objects",
    responses: { 201: Hold },
    handle: async ({ app }) => toHold(await takeHold(app)),
  }),
  route({
    ...admin,
    method: "PUT",
    path: "/api/v1/admin/removal_holds/:id",
    // Twice a minute, for as long as a backup takes.
    audited: false,
    operationId: "renewRemovalHold",
    summary: "Renew a deletion hold",
    params,
    responses: { 200: Hold },
    errors: { 404: ["not_found"] },
    handle: async ({ app, params: { id } }) => toHold((await renewHold(app, id)) ?? notFound("hold")),
  }),
  route({
    ...admin,
    method: "DELETE",
    path: "/api/v1/admin/removal_holds/:id",
    operationId: "deleteRemovalHold",
    summary: "End a deletion hold",
    params,
    responses: { 204: null },
    async handle({ app, params: { id } }) {
      await endHold(app, id);
      return new Reply(204, undefined);
    },
  }),
];
