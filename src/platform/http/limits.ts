import { LRUCache } from "lru-cache";
import type { RateLimiterAbstract, RateLimiterRes } from "rate-limiter-flexible";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { networkOf } from "#lib/network";
import type { SharedCache } from "#storage/cache/shared-cache.ts";
import type { Caller } from "./caller.ts";
import type { LimitName } from "./route.ts";

export type Limits = {
  /** Counts one request. Returns the headers of draft-ietf-httpapi-ratelimit-headers; throws 429. */
  consume(name: LimitName, caller: Caller, address: string): Promise<Record<string, string>>;
  /** The policy header for responses that are not counted. */
  policyOf(name: LimitName): Record<string, string>;
};

export type Rule = { requests: number; seconds: number };

/** 11 MB for each limit. A flood from more addresses than that exceeds any limit anyway. */
const MAX_ADDRESSES = 20_000;

/**
 * Limits are per tenant, or per address without a tenant, and count the requests of this process, or of all servers
 * that share a Redis. The admin token has no tenant and is not limited.
 */
export function createLimits({ config, cache: { redis } }: Pick<App, "config" | "cache">): Limits {
  const rules: Record<LimitName, Rule> = {
    uploads: config.rate_limit_uploads,
    billing: config.rate_limit_billing,
    translate: config.rate_limit_translate,
    sync: config.rate_limit_sync,
    live: config.rate_limit_live,
    device_tokens: config.rate_limit_device_tokens,
    beacon: config.rate_limit_beacon,
    pictures: config.rate_limit_pictures,
  };
  const windows = new Map<LimitName, Windows>();
  const policyOf = (name: LimitName) => ({
    "ratelimit-policy": `"${name}";q=${rules[name].requests};w=${rules[name].seconds}`,
  });
  return {
    policyOf,
    async consume(name, caller, address) {
      if (caller.kind === "admin") return {};
      const counted = windows.get(name) ?? countWindows(rules[name], { name, redis });
      windows.set(name, counted);
      const { left, waitSeconds, exceeded } =
        caller.kind === "key" || caller.kind === "batch"
          ? await counted.countTenant(caller.tenantId)
          : await counted.countAddress(address);
      const headers = { ...policyOf(name), ratelimit: `"${name}";r=${left};t=${waitSeconds}` };
      if (!exceeded) return headers;
      throw tooMany(waitSeconds, headers);
    },
  };
}

/** Throws 429 with Retry-After `waitSeconds`. */
export function tooMany(waitSeconds: number, headers: Record<string, string> = {}): HttpError {
  const wait = Math.max(1, waitSeconds);
  return new HttpError(429, "rate_limited", `Too many requests; try again in ${wait} s.`, {
    headers: { ...headers, "retry-after": String(wait) },
  });
}

type Counted = { left: number; waitSeconds: number; exceeded: boolean };
type Windows = {
  countTenant(tenantId: number): Promise<Counted>;
  /** With `about`, only that key is counted. */
  countAddress(address: string, about?: string): Promise<Counted>;
  /** Whether the limit allows another request, without counting one. */
  hasAllowance(address: string, about?: string): Promise<Counted>;
};

/** `name` is that of the limit in Redis. */
type SharedBy = { name: string; redis: SharedCache["redis"] };

/**
 * Fixed windows that start with the first request, counted in memory, or in Redis while it can be reached. Addresses
 * are unlimited in number, so only a bounded number of them is tracked in memory; windows in Redis expire.
 */
export function countWindows({ requests, seconds }: Rule, sharedBy?: SharedBy): Windows {
  const rule = { points: requests, duration: seconds };
  // Loaded with the first limited request: the package imports a driver for every database it supports.
  let library: Promise<typeof import("rate-limiter-flexible")> | undefined;
  let memory: RateLimiterAbstract | undefined;
  let shared: RateLimiterAbstract | undefined;
  async function limiters() {
    library ??= import("rate-limiter-flexible");
    const { RateLimiterMemory, RateLimiterRedis } = await library;
    memory ??= new RateLimiterMemory(rule);
    const client = sharedBy?.redis() ?? null;
    if (sharedBy && client)
      shared ??= new RateLimiterRedis({
        ...rule,
        storeClient: client,
        keyPrefix: `vodbox:limit:${sharedBy.name}`,
        insuranceLimiter: memory,
        rejectIfRedisNotReady: true,
      });
    return { memory, current: shared ?? memory };
  }
  const addresses = new LRUCache<string, true>({
    max: MAX_ADDRESSES,
    dispose: (_, key) => void limiters().then(({ memory }) => memory.delete(key)),
  });
  // The library ends a window by a timer, and computes the rest of it by the wall clock, which may have been set back.
  const countedOf = ({ remainingPoints, msBeforeNext }: RateLimiterRes, exceeded: boolean): Counted => ({
    left: remainingPoints,
    waitSeconds: Math.min(seconds, Math.ceil(msBeforeNext / 1000)),
    exceeded,
  });
  async function count(key: string): Promise<Counted> {
    try {
      return countedOf(await (await limiters()).current.consume(key), false);
    } catch (rejected) {
      if (rejected instanceof Error) throw rejected;
      return countedOf(rejected as RateLimiterRes, true);
    }
  }
  const keyOf = (address: string, about: string) => `address:${networkOf(address)} ${about}`;
  return {
    countTenant: (tenantId) => count(`tenant:${tenantId}`),
    countAddress(address, about = "") {
      const key = keyOf(address, about);
      if (!addresses.get(key)) addresses.set(key, true);
      return count(key);
    },
    async hasAllowance(address, about = "") {
      const window = await (await limiters()).current.get(keyOf(address, about));
      return window
        ? countedOf(window, window.consumedPoints >= requests)
        : { left: requests, waitSeconds: 0, exceeded: false };
    },
  };
}
