import { eq } from "drizzle-orm";
import type * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { type EndpointRow, webhookEndpoints as endpoints } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { Caller } from "../../http/caller.ts";
import { HttpError, invalid, notFound } from "../../lib/errors.ts";
import { httpClientOf } from "../../outbound/app-http-client.ts";
import { BlockedDestination } from "../../outbound/http-client.ts";
import { requireTenant } from "../tenants/queries.ts";
import { countEndpoints, getEndpoint } from "./queries.ts";
import type { EndpointWrite } from "./schema.ts";
import { encipher, newSigningSecret } from "./secret.ts";

/** Each is a row and a request more with every event of the tenant. */
const MAX_ENDPOINTS = 100;
/** How long both secrets sign after a rotation. */
const OVERLAP_MS = 24 * 3_600_000;

type Write = v.InferOutput<typeof EndpointWrite>;
export type WithSecret = { row: EndpointRow; secret: string };

/** An endpoint and its secret, which is told only now. 422 for an address that deliveries could never reach. */
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
      eventTypes: body.event_types,
      secret: encipher(app, tenant.id, secret),
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  return { row, secret };
}

/** The address as it will be asked for. What a name leads to is looked up at each delivery, not now. */
export async function checkedUrl(app: App, url: string): Promise<string> {
  try {
    return (await httpClientOf(app)).check(url.trim()).href;
  } catch (error) {
    if (!(error instanceof BlockedDestination)) throw error;
    return invalid("url", `cannot be delivered to: ${error.message}`);
  }
}

/** On: what failed before is forgotten. Off: nothing is sent, and what falls due is kept as skipped. */
export async function setActive(tx: Db, app: App, caller: Caller, id: number, active: boolean): Promise<EndpointRow> {
  const before = (await getEndpoint(tx, caller, id)) ?? notFound("webhook");
  const fresh = { failureCount: 0, failingSince: null, disabledAt: null, disabledReason: null };
  return tx
    .update(endpoints)
    .set({ active, ...(active && fresh), updatedAt: app.clock.now() })
    .where(eq(endpoints.id, before.id))
    .returning()
    .get();
}

/** A new secret. The present one signs beside it for a day; one that was still doing so does no longer. */
export async function rotateSecret(tx: Db, app: App, caller: Caller, id: number): Promise<WithSecret> {
  const before = (await getEndpoint(tx, caller, id)) ?? notFound("webhook");
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

/** Gone from now on; its deliveries may be many, and follow in slices. */
export async function deleteEndpoint(tx: Db, app: App, caller: Caller, id: number): Promise<void> {
  const { id: own } = (await getEndpoint(tx, caller, id)) ?? notFound("webhook");
  const now = app.clock.now();
  await tx.update(endpoints).set({ active: false, deletedAt: now, updatedAt: now }).where(eq(endpoints.id, own));
}
