import { eq } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { BlockedDestination } from "#lib/network";
import { ALL_MUX_NAMES, fromMuxName, muxNamesOf, ONLY_MUX_NAMES } from "#platform/events/mux-names.ts";
import type { Caller } from "#platform/http/caller.ts";
import { httpClientOf } from "#platform/outbound/app-http-client.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type EndpointRow, webhookEndpoints as endpoints } from "#storage/db/schema.ts";
import { requireTenant } from "../tenants/queries.ts";
import { countEndpoints, getEndpoint } from "./queries.ts";
import type { EndpointPatch, EndpointWrite } from "./schema.ts";
import { encipher, newSigningSecret } from "./secret.ts";

/** Each endpoint adds a row and a request to every event of the tenant. */
const MAX_ENDPOINTS = 100;
/** How long both secrets sign after a rotation. */
const OVERLAP_MS = 24 * 3_600_000;

type Write = v.InferOutput<typeof EndpointWrite>;
export type WithSecret = { row: EndpointRow; secret: string };

/**
 * Creates an endpoint and its secret, which is returned only once. Throws 422 for a URL that deliveries may never
 * reach.
 */
export async function createEndpoint(tx: Db, app: App, caller: Caller, body: Write): Promise<WithSecret> {
  const tenant = await requireTenant(tx, caller, body.tenant_id);
  if ((await countEndpoints(tx, tenant.id)) >= MAX_ENDPOINTS) {
    throw new HttpError(
      422,
      "webhook_limit_reached",
      `A tenant has at most ${MAX_ENDPOINTS} endpoints; delete one first.`,
    );
  }
  const secret = newSigningSecret();
  const now = app.clock.now();
  const row = await tx
    .insert(endpoints)
    .values({
      tenantId: tenant.id,
      url: body.url,
      description: body.description ?? null,
      format: body.format,
      eventTypes: typesOf(body.format, body.event_types),
      secret: encipher(app, tenant.id, secret),
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  return { row, secret };
}

/** The normalized URL. Its host is resolved at each delivery, not now. */
export async function checkedUrl(app: App, url: string): Promise<string> {
  try {
    return (await httpClientOf(app)).check(url.trim()).href;
  } catch (error) {
    if (!(error instanceof BlockedDestination)) throw error;
    return invalid("url", `cannot be delivered to: ${error.message}`);
  }
}

/**
 * What an endpoint subscribes to, by the names of its format. In Mux's an empty list is all of them. Throws 422 for a name that
 * the format does not have.
 */
function typesOf(format: EndpointRow["format"], names: readonly string[]): string[] {
  if (format === "svc") {
    const foreign = names.find((name) => ONLY_MUX_NAMES.includes(name));
    if (foreign !== undefined) invalid("event_types", `${foreign} is a name of Mux, for the format mux`);
    return [...names];
  }
  if (names.length === 0) return [...ALL_MUX_NAMES];
  const none = names.find((name) => muxNamesOf(name).length === 0);
  if (none !== undefined) invalid("event_types", `${none} has no name in Mux's format`);
  return [...new Set(names.flatMap(muxNamesOf))];
}

/** The subscriptions of an endpoint whose format changes: those that the other format has. */
function typesIn(format: EndpointRow["format"], { format: before, eventTypes }: EndpointRow): string[] {
  if (format === before) return eventTypes;
  if (format === "svc")
    return eventTypes.length === ALL_MUX_NAMES.length ? [] : [...new Set(eventTypes.flatMap(fromMuxName))];
  const own = eventTypes.flatMap(muxNamesOf);
  return own.length > 0 ? own : [...ALL_MUX_NAMES];
}

type Patch = v.InferOutput<typeof EndpointPatch>;

/** Changes the given fields. Deliveries that are pending go to the new URL. */
export async function updateEndpoint(tx: Db, app: App, caller: Caller, id: number, patch: Patch): Promise<EndpointRow> {
  const before = (await getEndpoint(tx, caller, id)) ?? notFound("webhook");
  forgetEndpoint(tx, app, before.id);
  const format = patch.format ?? before.format;
  return tx
    .update(endpoints)
    .set({
      ...(patch.format !== undefined && { format, eventTypes: typesIn(format, before) }),
      ...(patch.url !== undefined && { url: patch.url }),
      ...(patch.description !== undefined && { description: patch.description }),
      ...(patch.event_types !== undefined && { eventTypes: typesOf(format, patch.event_types) }),
      updatedAt: app.clock.now(),
    })
    .where(eq(endpoints.id, before.id))
    .returning()
    .get();
}

/** Enabled: earlier failures are reset. Disabled: nothing is sent, and due deliveries become skipped. */
export async function setActive(tx: Db, app: App, caller: Caller, id: number, active: boolean): Promise<EndpointRow> {
  const before = (await getEndpoint(tx, caller, id)) ?? notFound("webhook");
  forgetEndpoint(tx, app, before.id);
  const fresh = { failureCount: 0, failingSince: null, disabledAt: null, disabledReason: null };
  return tx
    .update(endpoints)
    .set({ active, ...(active && fresh), updatedAt: app.clock.now() })
    .where(eq(endpoints.id, before.id))
    .returning()
    .get();
}

/** Creates a new secret. The present one also signs for a day; an older one no longer does. */
export async function rotateSecret(tx: Db, app: App, caller: Caller, id: number): Promise<WithSecret> {
  const before = (await getEndpoint(tx, caller, id)) ?? notFound("webhook");
  forgetEndpoint(tx, app, before.id);
  const secret = newSigningSecret();
  const now = app.clock.now();
  const row = await tx
    .update(endpoints)
    .set({
      secret: encipher(app, before.tenantId, secret),
      previousSecret: before.secret,
      previousSecretExpiresAt: now + OVERLAP_MS,
      updatedAt: now,
    })
    .where(eq(endpoints.id, before.id))
    .returning()
    .get();
  return { row, secret };
}

/** Deleted immediately; its deliveries may be many, and are deleted in slices. */
export async function deleteEndpoint(tx: Db, app: App, caller: Caller, id: number): Promise<void> {
  const { id: own } = (await getEndpoint(tx, caller, id)) ?? notFound("webhook");
  const now = app.clock.now();
  await tx.update(endpoints).set({ active: false, deletedAt: now, updatedAt: now }).where(eq(endpoints.id, own));
  forgetEndpoint(tx, app, own);
}

/** The dispatcher of every process reads the endpoint again. */
const forgetEndpoint = (tx: Db, app: App, id: number) =>
  afterCommit(tx, () => void app.signals.emit("webhook.changed", id));
