import { and, eq, isNull } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import { forApp } from "#app.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import { type SigningKeyRow, signingKeys, tenants } from "#storage/db/schema.ts";

type LiveKeys = ReadonlyMap<string, Pick<SigningKeyRow, "algorithm" | "publicKey">>;

/** Longest time that a key revoked by another process remains valid. */
const STALE_MS = 1000;
const MAX_TENANTS = 10_000;

/**
 * A tenant's active keys by public id; none of a suspended tenant, like its API keys. All of a tenant are cached
 * together, so that unknown ids, of which anyone can invent any number, are looked up in memory.
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
  // Also when others write to the database. The promise is cached, so that concurrent requests share one query.
  const recent = new LRUCache<number, { keys: Promise<LiveKeys>; atMs: number }>({ max: MAX_TENANTS });

  function lately(tenantId: number): Promise<LiveKeys> {
    const now = app.clock.now();
    const cached = recent.get(tenantId);
    if (cached && now >= cached.atMs && now - cached.atMs < STALE_MS) return cached.keys;
    const fresh = { keys: load(tenantId), atMs: now };
    recent.set(tenantId, fresh);
    fresh.keys.catch(() => recent.peek(tenantId) === fresh && recent.delete(tenantId));
    return fresh.keys;
  }

  return {
    find: async (tenantId: number, keyId: string) =>
      (await (app.commits() === null ? lately(tenantId) : untilCommit(tenantId))).get(keyId),
    /** Called after a change of this process, to apply it immediately. */
    forget: (tenantId: number): void => void recent.delete(tenantId),
  };
});
