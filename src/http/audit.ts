import { AsyncLocalStorage } from "node:async_hooks";
import { and, desc, eq, getTableColumns, gte, lt, type Placeholder, sql } from "drizzle-orm";
import type { Db } from "../../storage/db/open.ts";
import { prepared } from "../../storage/db/prepared.ts";
import { type AuditRow, auditEntries } from "../../storage/db/schema.ts";
import type { App } from "../app.ts";
import type { Caller } from "./caller.ts";
import { type Context, Reply, type Route } from "./route.ts";

const DAY_MS = 86_400_000;
const BATCH = 1000;
const MAX_FIELDS = 50;

type Call = Omit<AuditRow, "id" | "createdAt"> & { now(): number; isWritten: boolean; isOver: boolean };
const current = new AsyncLocalStorage<Call>();

/** Asked of rows of the table: what changes something with the admin token, but for the work of workers. */
const isAudited = (route: Route, caller: Caller, method: string): boolean =>
  route.audited ?? (caller.kind === "admin" && route.credential !== "worker" && method !== "GET" && method !== "HEAD");

/** Runs a route's handler so that the first of its writes that is committed carries an entry about the call. */
export async function audited<T>(route: Route, context: Context, address: string, work: () => T): Promise<Awaited<T>> {
  const { app, caller, method } = context;
  if (!isAudited(route, caller, method)) return await work();
  const params = context.params as Record<string, unknown>;
  const target = params.id ?? params.ref ?? params.name;
  const call: Call = {
    actor: caller.kind === "admin" || caller.kind === "key" ? caller.kind : "anyone",
    keyId: caller.kind === "key" ? caller.keyId : null,
    tenantId: caller.kind === "key" ? caller.tenantId : numberOf((context.body as Fields)?.tenant_id),
    address,
    operator: operatorOf(context.headers),
    method,
    route: route.path,
    targetType: /^\/api\/v1\/(?:admin\/)?([a-z_]+)/.exec(route.path)?.[1] ?? route.path,
    targetId: target === undefined ? null : String(target),
    fields: fieldsOf(context.body),
    requestId: context.requestId,
    now: app.clock.now,
    isWritten: false,
    isOver: false,
  };
  try {
    return await current.run(call, async () => await work());
  } finally {
    // What it started in the background is none of the caller's changes.
    call.isOver = true;
  }
}

/** `write` for all of the program: within an audited call the entry stands in the transaction of the change, or neither. */
export function auditing(write: App["write"]): App["write"] {
  return async (work) => {
    const call = current.getStore();
    if (!call || call.isWritten || call.isOver) return write(work);
    // Before the write: another of the same call must not carry it too.
    call.isWritten = true;
    try {
      return await write(async (tx) => {
        const value = await work(tx);
        if (!isReplayed(value)) await put(tx).run(entryOf(call, value));
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
  const values = Object.fromEntries(Object.keys(columns).map((name) => [name, sql.placeholder(name)]));
  return db
    .insert(auditEntries)
    .values(values as Record<keyof typeof columns, Placeholder>)
    .prepare();
});

/** A repeat of an earlier request changed nothing. */
const isReplayed = (value: unknown) => value instanceof Reply && "idempotent-replayed" in value.headers;

function entryOf(call: Call, result: unknown): Omit<AuditRow, "id"> {
  const { now, isWritten: _, isOver: __, ...entry } = call;
  const made = (result instanceof Reply ? result.body : result) as Fields;
  const id = numberOf(made?.id);
  const ofTenant = entry.targetType === "tenants" ? (id ?? numberOf(Number(entry.targetId))) : null;
  return {
    ...entry,
    createdAt: now(),
    tenantId: entry.tenantId ?? numberOf(made?.tenantId) ?? numberOf(made?.tenant_id) ?? ofTenant,
    targetId: entry.targetId ?? (id === null ? null : String(id)),
  };
}

type Fields = Record<string, unknown> | null | undefined;
const numberOf = (value: unknown) => (typeof value === "number" && Number.isSafeInteger(value) ? value : null);

/** Names alone, and those that are names of ours: keys of a tenant's own may be anything. */
function fieldsOf(body: unknown): string[] {
  const namesIn = (value: unknown, before: string): string[] =>
    typeof value !== "object" || value === null || Array.isArray(value)
      ? []
      : Object.entries(value).flatMap(([name, inner]) =>
          inner === undefined || !/^[a-z][a-z0-9_]{0,39}$/.test(name) || before.split(".").length > 2
            ? []
            : [before + name, ...(name === "tags" ? [] : namesIn(inner, `${before}${name}.`))],
        );
  return namesIn(body, "").slice(0, MAX_FIELDS);
}

function operatorOf(headers: Headers): string | null {
  const told = headers
    .get("x-svc-operator")
    ?.replaceAll(/[^\x20-\x7e]/g, "")
    .trim();
  return told ? told.slice(0, 100) : null;
}

export type AuditFilter = { tenantId?: number | undefined; since?: number | undefined };

/** Newest first, up to `limit` + 1. */
export const listAudit = (
  db: Db,
  { tenantId, since }: AuditFilter,
  { limit, before }: { limit: number; before?: number | undefined },
): Promise<AuditRow[]> =>
  db
    .select()
    .from(auditEntries)
    .where(
      and(
        tenantId === undefined ? undefined : eq(auditEntries.tenantId, tenantId),
        since === undefined ? undefined : gte(auditEntries.createdAt, since),
        before === undefined ? undefined : lt(auditEntries.id, before),
      ),
    )
    .orderBy(desc(auditEntries.id))
    .limit(limit + 1)
    .all();

/** Removes what is past its time. */
export async function pruneAudit(app: App): Promise<void> {
  const until = app.clock.now() - app.config.audit_days * DAY_MS;
  const old = lt(auditEntries.createdAt, until);
  if (!(await app.db.select({ id: auditEntries.id }).from(auditEntries).where(old).limit(1).get())) return;
  for (let last = BATCH; last === BATCH; ) {
    last = await app.write(async (tx) => {
      const rows = await tx.select({ id: auditEntries.id }).from(auditEntries).where(old).limit(BATCH).all();
      for (const { id } of rows) await tx.delete(auditEntries).where(eq(auditEntries.id, id));
      return rows.length;
    });
  }
}
