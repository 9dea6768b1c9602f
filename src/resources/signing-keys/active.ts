import { and, eq, isNull } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import { cacheUntilCommit } from "../../../storage/db/commit-cache.ts";
import { type SigningKeyRow, signingKeys, tenants } from "../../../storage/db/schema.ts";
import { forApp } from "../../app.ts";

type LiveKeys = ReadonlyMap<string, Pick<SigningKeyRow, "algorithm" | "publicKey">>;

/** How long a key may go on that another process revoked. */
const STALE_MS = 1000;
const MAX_TENANTS = 10_000;

/**
 * A tenant's keys that are not revoked, by their public id; none of a suspended one, like its API keys. All of a tenant's at once: so a name that nobody has, of
 * which strangers can make up any number, is looked up in memory.
 */
export const activeSigningKeys = forApp((app) => {
  const load = async (tenantId: number): Promise<LiveKeys> => {
    const rows = await app.db
      .select({ keyId: signingKeys.keyId, algorithm: signingKeys.algorithm, publicKey: signingKeys.publicKey })
      .from(signingKeys)
      .innerJoin(tenants, eq(tenants.id, signingKeys.tenantId))
      .where(and(eq(signingKeys.tenantId, tenantId), isNull(signingKeys.revokedAt), eq(tenants.status, "active")))
      .all();
    return new Map(rows.map(({ keyId, ...key }) => [keyId, key]));
  };
  const untilCommit = cacheUntilCommit(app.commits, load, MAX_TENANTS);
  // Where others write to the database too. The promise is kept, so that a thousand requests at once ask once.
  const recent = new LRUCache<number, { keys: Promise<LiveKeys>; atMs: number }>({ max: MAX_TENANTS });

  function lately(tenantId: number): Promise<LiveKeys> {
    const now = app.clock.now();
    const held = recent.get(tenantId);
    if (held && now >= held.atMs && now - held.atMs < STALE_MS) return held.keys;
    const fresh = { keys: load(tenantId), atMs: now };
    recent.set(tenantId, fresh);
    fresh.keys.catch(() => recent.peek(tenantId) === fresh && recent.delete(tenantId));
    return fresh.keys;
  }

  return {
    find: async (tenantId: number, keyId: string) =>
      (await (app.commits() === null ? lately(tenantId) : untilCommit(tenantId))).get(keyId),
    /** After a change of this process, which counts at once. */
    forget: (tenantId: number): void => void recent.delete(tenantId),
  };
});
