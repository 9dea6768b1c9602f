import { AsyncLocalStorage } from "node:async_hooks";
import { and, desc, eq, getTableColumns, gte, lt, type Placeholder, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import { type AuditRow, auditEntries } from "#storage/db/schema.ts";
import type { Caller } from "./caller.ts";
import { type Batches, inWindows, WINDOW_ROWS } from "./paging.ts";
import { type Context, Reply, type Route } from "./route.ts";

const DAY_MS = 86_400_000;
/** Levels of nested objects: `a.b`. */
const MAX_DEPTH = 2;
const MAX_FIELDS = 50;

type Call = Omit<AuditRow, "id" | "createdAt" | "actorName"> & { now(): number; isWritten: boolean; isOver: boolean };
const current = new AsyncLocalStorage<Call>();

/** Steps of a transfer, which has records of its own, and of which software makes many. */
const TRANSFERS = /^\/api\/v1\/(uploads|ingest_batches)\//;
const BEGINS_UPLOAD = /\/(initiate|initiate_multipart|from_url)$/;

/** What an entry says of an operation. `target`: the path whose parts name what it changes; the default is its own. */
export type AuditedRoute = Pick<Route, "audited" | "credential" | "method" | "operationId" | "path"> & {
  target?: string;
};

/** By default, changes with the admin token, by people and by keys are audited, except those of workers. */
function isAudited({ audited, credential, path }: AuditedRoute, { caller, method }: Context): boolean {
  if (audited !== undefined) return audited;
  if (credential === "worker" || method === "GET" || method === "HEAD") return false;
  if (caller.kind !== "key") return caller.kind === "admin";
  return !TRANSFERS.test(path) || (caller.userId !== undefined && BEGINS_UPLOAD.test(path));
}

/**
 * Runs a route's handler so that the first write it commits includes an audit entry for the call. The calls of the API that
 * the handler makes, as for Mux's API, have no entries of their own.
 */
export async function audited<T>(
  route: AuditedRoute,
  context: Context,
  address: string,
  work: () => T,
): Promise<Awaited<T>> {
  const { app, caller, method } = context;
  const outer = current.getStore();
  if (outer && !outer.isOver) return await work();
  if (!isAudited(route, context)) return await work();
  const call: Call = {
    actor: actorOf(caller),
    keyId: caller.kind === "key" ? caller.keyId : null,
    userId: caller.kind === "key" ? (caller.userId ?? null) : null,
    tenantId: caller.kind === "key" ? caller.tenantId : numberOf((context.body as Fields)?.tenant_id),
    address,
    operator: operatorOf(context.headers),
    method,
    route: route.path,
    ...targetOf(route.target ?? route.path, context.params as Record<string, unknown>),
    action: actionOf(route),
    fields: fieldsOf(context.body),
    requestId: context.requestId,
    now: app.clock.now,
    isWritten: false,
    isOver: false,
  };
  try {
    return await current.run(call, async () => await work());
  } finally {
    // Background work that the handler started is not a change by the caller.
    call.isOver = true;
  }
}

/** `updateAsset` becomes `update_asset`. */
export const snakeCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const actionOf = ({ operationId, method, path }: AuditedRoute) =>
  operationId === undefined ? `${method} ${path}` : snakeCase(operationId);

/** Says in an audited call which user it turned out to be by, where the request has no credential: a sign-in. */
export function attributeTo(userId: number): void {
  const call = current.getStore();
  if (call && !call.isOver) Object.assign(call, { actor: "user", userId } satisfies Partial<Call>);
}

/** Describes an audited call: with a body that its handler has read, or with the id by which clients know what it creates. */
export function describeCall({ body, targetId }: { body?: unknown; targetId?: string }): void {
  const call = current.getStore();
  if (!call || call.isOver) return;
  if (body !== undefined) call.fields = fieldsOf(body);
  if (targetId !== undefined) call.targetId = targetId;
}

/** Runs a change that is not part of the audited call: it has an entry of its own. */
export const separately = <T>(work: () => T): T => current.exit(work);

const actorOf = (caller: Caller): Call["actor"] => {
  if (caller.kind === "key") return caller.keyId === null ? "user" : "key";
  return caller.kind === "admin" ? "admin" : "anyone";
};

/** Parameters that entries do not keep: a code is a secret, and what is stored of a viewer is erased. */
const UNRECORDED = new Set(["code", "viewer_id"]);

/** The innermost resource that the path names, or the collection without an id: `/assets/:id/subtitles` changes an asset. */
function targetOf(path: string, params: Record<string, unknown>): Pick<Call, "targetType" | "targetId"> {
  const parts = path.split("/");
  const at = parts.findLastIndex((part) => part.startsWith(":"));
  const type = parts[at - 1];
  const name = parts[at]?.slice(1);
  if (type !== undefined && name !== undefined && !UNRECORDED.has(name))
    return { targetType: type, targetId: String(params[name]) };
  return { targetType: /^\/api\/v1\/(?:admin\/)?([a-z_]+)/.exec(path)?.[1] ?? path, targetId: null };
}

/** Replaces `write` in the whole program: within an audited call, the entry commits with the change or not at all. */
export function auditing(write: App["write"]): App["write"] {
  return async (work) => {
    const call = current.getStore();
    if (!call || call.isWritten || call.isOver) return write(work);
    // Set before the write, so that a concurrent write of the same call does not add a second entry.
    call.isWritten = true;
    try {
      return await write(async (tx) => {
        const owner = await ownerOfTarget(tx, call);
        const value = await work(tx);
        if (!isReplayed(value)) await put(tx).run(entryOf(call, value, owner));
        return value;
      });
    } catch (error) {
      call.isWritten = false;
      throw error;
    }
  };
}

const put = prepared((db) => {
  const { id: _, ...columns } = getTableColumns(auditEntries);
  const values = {
    ...Object.fromEntries(Object.keys(columns).map((name) => [name, sql.placeholder(name)])),
    actorName: sql`coalesce(${sql.placeholder("actorName")}, (SELECT email_address FROM users WHERE id = ${sql.placeholder("userId")}), 'user:' || ${sql.placeholder("userId")})`,
  };
  return db
    .insert(auditEntries)
    .values(values as unknown as Record<keyof typeof columns, Placeholder>)
    .prepare();
});

/** A replayed response changed nothing. */
const isReplayed = (value: unknown) => value instanceof Reply && "idempotent-replayed" in value.headers;

/** Tables by the name of a target in paths. */
const TABLES: Record<string, string> = {
  assets: "assets",
  api_keys: "api_keys",
  channels: "live_channels",
  collections: "collections",
  invitations: "invitations",
  signing_keys: "signing_keys",
  transcoding_jobs: "transcoding_jobs",
  uploads: "uploads",
  users: "users",
  webhooks: "webhook_endpoints",
};

/** The tenant of what the operator is about to change, which may not exist afterwards; null where that is not known. */
async function ownerOfTarget(tx: Db, { actor, tenantId, targetType, targetId }: Call): Promise<number | null> {
  const table = TABLES[targetType];
  if (actor !== "admin" || tenantId !== null || table === undefined || targetId === null) return null;
  const column = sql.raw(table === "users" && targetId.includes("@") ? "email_address" : "id");
  const query = sql`SELECT tenant_id AS id FROM ${sql.raw(table)} WHERE ${column} = ${targetId}`;
  return (await tx.all<{ id: number | null }>(query))[0]?.id ?? null;
}

function entryOf(call: Call, result: unknown, owner: number | null): Omit<AuditRow, "id"> {
  const { now, isWritten: _, isOver: __, ...entry } = call;
  const record = (result instanceof Reply ? result.body : result) as Fields;
  const id = numberOf(record?.id);
  const ofTenant = entry.targetType === "tenants" ? (id ?? numberOf(Number(entry.targetId))) : null;
  return {
    ...entry,
    createdAt: now(),
    actorName: actorNameOf(call),
    tenantId: entry.tenantId ?? owner ?? numberOf(record?.tenantId) ?? numberOf(record?.tenant_id) ?? ofTenant,
    targetId: entry.targetId ?? (id === null ? null : String(id)),
  };
}

/** Null for a user, whose e-mail address is read in the same statement. */
function actorNameOf({ actor, keyId, userId }: Call): string | null {
  if (actor === "admin") return "operator";
  if (actor === "key") return `key:${keyId}`;
  return actor === "user" && userId !== null ? null : actor;
}

type Fields = Record<string, unknown> | null | undefined;
const numberOf = (value: unknown) => (typeof value === "number" && Number.isSafeInteger(value) ? value : null);

/** The field names of a request body, at most `MAX_FIELDS`. Only names of the API: a tenant's own keys may contain anything. */
const fieldsOf = (body: unknown): string[] => [...fieldNames(body).take(MAX_FIELDS)];

/** Plain objects only: an uploaded file has an own property for each of its bytes. */
function* fieldNames(value: unknown, prefix = "", depth = 0): Generator<string, void> {
  if (!isPlainObject(value) || depth === MAX_DEPTH) return;
  for (const name in value) {
    if (value[name] === undefined || !/^[a-z][a-z0-9_]{0,39}$/.test(name)) continue;
    yield prefix + name;
    if (name !== "tags") yield* fieldNames(value[name], `${prefix}${name}.`, depth + 1);
  }
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function operatorOf(headers: Headers): string | null {
  const name = headers
    .get("x-svc-operator")
    ?.replaceAll(/[^\x20-\x7e]/g, "")
    .trim();
  return name ? name.slice(0, 100) : null;
}

export type AuditFilter = {
  tenantId?: number | undefined;
  since?: number | undefined;
  /** As `actorName` and `action` of an entry. */
  actor?: string | undefined;
  action?: string | undefined;
};

/**
 * Entries that a filter selects, newest first. Of the filters that have an index, one is used; the others are searched in windows
 * of ids.
 */
export function listAudit(
  db: Db,
  { tenantId, since, actor, action }: AuditFilter,
  before: number | undefined,
): Batches<AuditRow> {
  const { id, tenantId: tenant, actorName, action: operation, createdAt } = auditEntries;
  const filters = [
    actor === undefined ? undefined : eq(actorName, actor),
    action === undefined ? undefined : eq(operation, snakeCase(action)),
  ].filter((one) => one !== undefined);
  const ofTenant = tenantId === undefined ? undefined : eq(tenant, tenantId);
  // There is one for a tenant with its actor, and with its action, none with both, and none without a tenant.
  const indexed = and(ofTenant, ofTenant && filters.shift());
  // The plus sign keeps SQLite from choosing another index than the one that limits a window.
  const others = [...filters, since === undefined ? undefined : gte(createdAt, since)].map(
    (one) => one && sql`+${one}`,
  );
  return inWindows<AuditRow, number>({
    from: before,
    keyOf: (row) => row.id,
    endOf: async (after) =>
      (
        await db
          .select({ id })
          .from(auditEntries)
          .where(and(indexed, after === undefined ? undefined : lt(id, after)))
          .orderBy(desc(id))
          .limit(1)
          .offset(WINDOW_ROWS - 1)
          .get()
      )?.id,
    read: ({ after, until }, limit) =>
      db
        .select()
        .from(auditEntries)
        .where(
          and(
            indexed,
            ...others,
            after === undefined ? undefined : lt(id, after),
            until === undefined ? undefined : gte(id, until),
          ),
        )
        .orderBy(desc(id))
        .limit(limit)
        .all(),
  });
}

/** Deletes entries past their retention. */
export const pruneAudit = (app: App): Promise<number> => {
  const until = app.clock.now() - app.config.audit_days * DAY_MS;
  return deleteInSlices(app, { table: "audit_entries", where: sql`created_at < ${until}` });
};
