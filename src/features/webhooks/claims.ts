import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import type { EndpointRow } from "#storage/db/schema.ts";
import { decipher } from "./secret.ts";

/**
 * A claim that was not settled expires after this time, and the delivery can be claimed again. An attempt that could
 * end after its claim is not started.
 */
const CLAIM_MS = 60_000;
/** Deliveries of a paused endpoint that are skipped at once. */
const SKIP_BATCH = 200;

/** A claimed delivery with the data of its next attempt. */
export type Claimed = {
  id: number;
  endpointId: number;
  claimedUntil: number;
  /** Attempts since it was created or last replayed. */
  tries: number;
  url: string;
  eventId: string;
  event: string;
  /** The name of the event in Mux's form. */
  name: string | null;
  tenantId: number;
  createdAt: number;
  /** JSON, as it was stored. */
  data: string;
  format: EndpointRow["format"];
  /** The W3C trace context of what caused the event; null: unknown, or traces were off. */
  traceparent: string | null;
  /** Null when it cannot be decrypted: the server's signing secret has changed. */
  secrets: readonly string[] | null;
};
export type ClaimRequest = { endpointId: number; tenantId: number; limit: number };
/** `more`: others may be due. */
export type ClaimedDelivery = { endpointId: number; tenantId: number; claimed: Claimed[]; more: boolean };

/**
 * Endpoints with due deliveries. Skips from one endpoint to the next in the index, so the cost depends on the number of
 * endpoints, not of deliveries.
 */
export async function endpointsWithDue(db: Db, now: number): Promise<{ id: number; tenantId: number }[]> {
  return db.all<{ id: number; tenantId: number }>(sql`
    WITH RECURSIVE waiting (id) AS (
      SELECT min(endpoint_id) FROM webhook_deliveries WHERE status = 'pending'
      UNION ALL
      SELECT (SELECT min(endpoint_id) FROM webhook_deliveries WHERE status = 'pending' AND endpoint_id > waiting.id)
      FROM waiting WHERE waiting.id IS NOT NULL
    )
    SELECT waiting.id, webhook_endpoints.tenant_id AS "tenantId"
    FROM waiting JOIN webhook_endpoints ON webhook_endpoints.id = waiting.id
    WHERE waiting.id IS NOT NULL
      AND (SELECT min(next_attempt_at) FROM webhook_deliveries
           WHERE status = 'pending' AND endpoint_id = waiting.id) <= ${now}`);
}

type Endpoint = {
  tenantId: number;
  url: string;
  format: EndpointRow["format"];
  active: number;
  secret: string;
  previousSecret: string | null;
  previousSecretExpiresAt: number | null;
};
type Due = {
  id: number;
  tries: number;
  eventId: string;
  event: string;
  name: string | null;
  createdAt: number;
  data: string;
  traceparent: string | null;
};

/** Claims due deliveries of one endpoint, oldest first; those of a paused one become skipped. */
export async function claim(tx: Db, app: App, { endpointId, tenantId, limit }: ClaimRequest): Promise<ClaimedDelivery> {
  const now = app.clock.now();
  const [endpoint] = await tx.all<Endpoint>(sql`
    SELECT tenant_id AS "tenantId", url, format, active, secret, previous_secret AS "previousSecret",
      previous_secret_expires_at AS "previousSecretExpiresAt"
    FROM webhook_endpoints WHERE id = ${endpointId}`);
  if (!endpoint) return { endpointId, tenantId, claimed: [], more: false };
  if (!endpoint.active) return { endpointId, tenantId, claimed: [], more: await skip(tx, endpointId, now) };
  const due = await tx.all<Due>(sql`
    SELECT d.id, d.tries, e.event_id AS "eventId", e.type AS event, d.name, e.created_at AS "createdAt", e.data, e.traceparent
    FROM webhook_deliveries d JOIN events e ON e.id = d.event_id
    WHERE d.endpoint_id = ${endpointId} AND d.status = 'pending' AND d.next_attempt_at <= ${now}
      AND (d.claimed_until IS NULL OR d.claimed_until <= ${now})
    ORDER BY d.next_attempt_at, d.id LIMIT ${limit}`);
  const claimedUntil = now + CLAIM_MS;
  await tx.run(sql`
    UPDATE webhook_deliveries SET claimed_until = ${claimedUntil}
    WHERE id IN (SELECT value FROM json_each(${JSON.stringify(due.map((row) => row.id))}))`);
  const secrets = secretsOf(app, endpoint, now);
  const { url, format } = endpoint;
  const shared = { endpointId, claimedUntil, url, format, tenantId: endpoint.tenantId, secrets };
  const claimed = due.map((row) => ({ ...shared, ...row }));
  return { endpointId, tenantId, claimed, more: due.length === limit };
}

/** `name`: of the event in Mux's form. */
export type EventOfDelivery = {
  eventId: string;
  event: string;
  name: string | null;
  createdAt: number;
  tenantId: number;
  data: string;
};

/** The body of a delivery; `data` is JSON, which is sent as it was stored. */
export const bodyOf = ({ eventId, event, createdAt, tenantId, data }: EventOfDelivery): string =>
  `{"id":"${eventId}","event":"${event}","type":"${event}","created_at":"${iso(createdAt)}","tenant_id":${tenantId},"data":${data}}`;

function secretsOf(app: App, endpoint: Endpoint, now: number): string[] | null {
  const readable = (ciphertext: string) => {
    try {
      return decipher(app, endpoint.tenantId, ciphertext);
    } catch {
      return null;
    }
  };
  const present = readable(endpoint.secret);
  if (present === null) return null;
  const overlaps = endpoint.previousSecret !== null && now < (endpoint.previousSecretExpiresAt ?? 0);
  const previous = overlaps ? readable(endpoint.previousSecret as string) : null;
  return previous === null ? [present] : [present, previous];
}

/** Whether there may be more. */
async function skip(tx: Db, endpointId: number, now: number): Promise<boolean> {
  const { rowsAffected } = await tx.run(sql`
    UPDATE webhook_deliveries SET status = 'skipped', next_attempt_at = NULL, claimed_until = NULL, updated_at = ${now}
    WHERE id IN (
      SELECT id FROM webhook_deliveries
      WHERE endpoint_id = ${endpointId} AND status = 'pending' AND next_attempt_at <= ${now} LIMIT ${SKIP_BATCH}
    )`);
  return rowsAffected === SKIP_BATCH;
}

/** Releases claims without counting an attempt. */
export const release = (tx: Db, claimed: readonly Claimed[]) =>
  tx.run(sql`
    UPDATE webhook_deliveries SET claimed_until = NULL
    FROM (SELECT value ->> 0 AS id, value ->> 1 AS claim
          FROM json_each(${JSON.stringify(claimed.map((each) => [each.id, each.claimedUntil]))})) AS given
    WHERE webhook_deliveries.id = given.id AND claimed_until = given.claim`);

/** Releases all claims of a dead process. Only for the single owner of a database. */
export const releaseAll = (tx: Db) =>
  tx.run(
    sql`UPDATE webhook_deliveries SET claimed_until = NULL WHERE status = 'pending' AND claimed_until IS NOT NULL`,
  );
