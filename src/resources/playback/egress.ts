import type { App } from "../../app.ts";
import { addUsage } from "../tenants/queries.ts";

export type Egress = {
  add(tenantId: number, bytes: number): void;
  /** Writes down what was sent since the last time. */
  flush(): Promise<void>;
};

/** Bytes sent a tenant, gathered in memory: a write for each segment would cost more than the segment. */
export function egressCounter(app: App): Egress {
  let sent = new Map<number, number>();
  return {
    add(tenantId, bytes) {
      sent.set(tenantId, (sent.get(tenantId) ?? 0) + bytes);
    },
    async flush() {
      if (sent.size === 0) return;
      const taken = sent;
      sent = new Map();
      try {
        await app.write(async (tx) => {
          for (const [tenantId, bytes] of taken) await addUsage(tx, tenantId, { egressBytes: bytes });
        });
      } catch (error) {
        // What could not be written is counted the next time.
        for (const [tenantId, bytes] of taken) sent.set(tenantId, (sent.get(tenantId) ?? 0) + bytes);
        throw error;
      }
    },
  };
}
