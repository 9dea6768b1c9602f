import { type App, forApp } from "#app.ts";
import { monthOf, nextMonth } from "#lib/base";
import { addUsage } from "../tenants/usage.ts";

export type Egress = {
  add(tenantId: number, bytes: number): void;
  /** Writes the counts since the last flush. */
  flush(): Promise<void>;
};

type Month = { from: number; to: number; sent: Map<number, number> };

/**
 * Counts bytes sent per tenant in memory: a write for each segment would cost more than the segment. Bytes sent before
 * the end of a month belong to that month, whenever they are written.
 */
export const egressCounter = forApp((app: App): Egress => {
  let months: Month[] = [];
  const sentIn = (time: number): Month["sent"] => {
    const known = months.find(({ from, to }) => time >= from && time < to);
    if (known) return known.sent;
    const from = monthOf(time);
    const fresh = { from, to: nextMonth(from), sent: new Map<number, number>() };
    months.push(fresh);
    return fresh.sent;
  };
  const count = (sent: Month["sent"], tenantId: number, bytes: number) =>
    sent.set(tenantId, (sent.get(tenantId) ?? 0) + bytes);
  return {
    add(tenantId, bytes) {
      count(sentIn(app.clock.now()), tenantId, bytes);
    },
    async flush() {
      if (months.length === 0) return;
      const counted = months;
      months = [];
      try {
        await app.write(async (tx) => {
          for (const { from, sent } of counted)
            for (const [tenantId, egressBytes] of sent) await addUsage(tx, tenantId, { egressBytes }, from);
        });
      } catch (error) {
        // Counts that could not be written are kept for the next flush.
        for (const { from, sent } of counted)
          for (const [tenantId, bytes] of sent) count(sentIn(from), tenantId, bytes);
        throw error;
      }
    },
  };
});
