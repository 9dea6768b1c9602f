import type { Redis, RedisOptions } from "ioredis";
import type { Logger } from "pino";
import { createStorage } from "unstorage";
import { type SharedCache, sharedCache } from "./shared-cache.ts";

const ENTRY_SECONDS = 86_400;

/** Longest delay of a request by a server that does not respond. */
const COMMAND_MS = 100;

const OPTIONS: RedisOptions = {
  // No reply here needs RESP3, whose handshake proxies and older servers may refuse.
  protocol: 2,
  commandTimeout: COMMAND_MS,
  // Then the connection is closed, so that commands fail at once until a new one is ready.
  socketTimeout: 500,
  connectTimeout: 2000,
  // Commands without a connection fail at once, and are not repeated.
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (attempt) => Math.min(attempt * 100, 2000),
};

/**
 * A cache in a Redis server, and its client for rate limits. Its code is loaded, and the server connected, in the
 * background. Each loss of the connection is logged once.
 */
export function redisCache(url: string, log: Logger): SharedCache {
  let isClosed = false;
  const open = async () => {
    const { default: redisDriver } = await import("unstorage/drivers/redis");
    const driver = redisDriver({ url, base: "vodbox:cache", ttl: ENTRY_SECONDS, ...OPTIONS });
    const redis = driver.getInstance?.() as Redis;
    logConnection(redis, log, () => isClosed);
    return { storage: createStorage({ driver }), redis };
  };
  // Failures of the server are logged by the state of the connection; others, such as a full server, concern one entry.
  const cache = sharedCache(open(), (err) => log.debug({ reason: (err as Error).message }, "an entry was not cached"));
  return {
    ...cache,
    close() {
      isClosed = true;
      return cache.close();
    },
  };
}

function logConnection(redis: Redis, log: Logger, isClosed: () => boolean): void {
  let state: "unknown" | "ready" | "away" = "unknown";
  let reason = "the connection was closed";
  redis.on("ready", () => {
    log.info("Redis is connected");
    state = "ready";
  });
  // Only the message: the error of a refused AUTH contains the password.
  redis.on("error", ({ message }: Error) => {
    reason = message;
  });
  redis.on("close", () => {
    if (state !== "away" && !isClosed())
      log.warn({ reason }, "Redis is not available; until it is, each process counts rate limits and caches by itself");
    state = "away";
  });
}
