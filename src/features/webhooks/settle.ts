import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { notify } from "../notifications/notify.ts";
import type { Outcome } from "./attempt.ts";

/** An endpoint without success for this long is disabled when the next delivery fails for good. */
const FAILING_MS = 5 * 24 * 3_600_000;

/** Stores the results of attempts: one statement for the deliveries, and one or two for each of their endpoints. */
export async function settle(tx: Db, app: App, outcomes: readonly Outcome[]): Promise<void> {
  if (outcomes.length === 0) return;
  const rows = outcomes.map((each) => [
    each.claimed.id,
    each.claimed.claimedUntil,
    each.status,
    each.nextAttemptAt,
    each.at,
    each.responseStatus,
    each.responseBody,
    each.durationMs,
    each.error?.code ?? null,
    each.error?.message ?? null,
  ]);
  // Only while this process holds the claim: a delivery that was claimed again is settled by its claimer.
  await tx.run(sql`
    UPDATE webhook_deliveries SET
      status = o.status, attempts = attempts + 1, tries = tries + 1, next_attempt_at = o.next, claimed_until = NULL,
      last_attempt_at = o.at, delivered_at = iif(o.status = 'delivered', o.at, delivered_at),
      response_status = o.response_status, response_body = o.response_body, duration_ms = o.duration_ms,
      error_code = o.error_code, error_message = o.error_message, updated_at = o.at
    FROM (
      SELECT value ->> 0 AS id, value ->> 1 AS claim, value ->> 2 AS status, value ->> 3 AS next, value ->> 4 AS at,
        value ->> 5 AS response_status, value ->> 6 AS response_body, value ->> 7 AS duration_ms,
        value ->> 8 AS error_code, value ->> 9 AS error_message
      FROM json_each(${JSON.stringify(rows)})
    ) AS o
    WHERE webhook_deliveries.id = o.id AND claimed_until = o.claim`);
  for (const [id, ofOne] of Map.groupBy(outcomes, (each) => each.claimed.endpointId))
    await updateEndpoint(tx, app, id, ofOne);
}

/** The state of an endpoint after its attempts, in the order of their ends. */
async function updateEndpoint(tx: Db, app: App, id: number, outcomes: readonly Outcome[]): Promise<void> {
  const lastGood = outcomes.findLast((each) => each.status === "delivered");
  const failed = lastGood ? outcomes.slice(outcomes.lastIndexOf(lastGood) + 1) : outcomes;
  const first = failed[0]?.at ?? null;
  const last = failed.at(-1);
  await tx.run(
    lastGood
      ? sql`UPDATE webhook_endpoints SET failure_count = ${failed.length}, failing_since = ${first},
            last_delivery_at = ${lastGood.at} WHERE id = ${id}`
      : sql`UPDATE webhook_endpoints SET failure_count = failure_count + ${failed.length},
            failing_since = coalesce(failing_since, ${first}) WHERE id = ${id}`,
  );
  const now = last?.at ?? 0;
  if (failed.some((each) => each.gone)) await disable(tx, app, { id, reason: "gone", now, failingSince: now });
  else if (failed.some((each) => each.status === "failed"))
    await disable(tx, app, { id, reason: "failing", now, failingSince: now - FAILING_MS });
}

type Disabled = { id: number; reason: "gone" | "failing"; now: number; failingSince: number };

async function disable(tx: Db, app: App, { id, reason, now, failingSince }: Disabled): Promise<void> {
  const disabled = await tx.all<{ tenant_id: number; url: string }>(sql`
    UPDATE webhook_endpoints SET active = 0, disabled_at = ${now}, disabled_reason = ${reason}, updated_at = ${now}
    WHERE id = ${id} AND active AND failing_since <= ${failingSince} RETURNING tenant_id, url`);
  for (const { tenant_id: tenantId, url } of disabled)
    await notify(tx, app, {
      tenantId,
      kind: "webhook_disabled",
      occurrence: `endpoint ${id} ${now}`,
      data: { endpoint_id: id, url: withoutQuery(url), reason },
    });
}

/** A query may be a secret of the receiver. */
const withoutQuery = (url: string) => url.replace(/[?#].*$/s, "");
