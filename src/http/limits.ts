import type { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import type { Config } from "../config/load.ts";
import { HttpError } from "../lib/errors.ts";
import type { Caller } from "./caller.ts";
import type { LimitName } from "./route.ts";

export type Limits = {
  /** Counts one request. Gives the headers of draft-ietf-httpapi-ratelimit-headers; throws 429. */
  consume(name: LimitName, caller: Caller, address: string): Promise<Record<string, string>>;
};

/** Per tenant, or per address where there is none. The admin token is nobody's tenant and is not limited. */
export function createLimits(config: Config): Limits {
  const rules: Record<LimitName, { requests: number; seconds: number }> = {
    uploads: config.rate_limit_uploads,
    billing: config.rate_limit_billing,
    translate: config.rate_limit_translate,
    sync: config.rate_limit_sync,
    live: config.rate_limit_live,
    device_tokens: config.rate_limit_device_tokens,
    beacon: config.rate_limit_beacon,
    pictures: config.rate_limit_pictures,
  };
  const limiters = new Map<LimitName, Promise<RateLimiterMemory>>();
  // Loaded at the first limited request: the package brings a driver for every database there is.
  const limiterOf = (name: LimitName) => {
    const known = limiters.get(name);
    if (known) return known;
    const { requests, seconds } = rules[name];
    const made = import("rate-limiter-flexible").then(
      (library) => new library.RateLimiterMemory({ keyPrefix: name, points: requests, duration: seconds }),
    );
    limiters.set(name, made);
    return made;
  };
  return {
    async consume(name, caller, address) {
      if (caller.kind === "admin") return {};
      const rule = rules[name];
      const key = caller.kind === "key" || caller.kind === "batch" ? `tenant:${caller.tenantId}` : `address:${address}`;
      const policy = `"${name}";q=${rule.requests};w=${rule.seconds}`;
      const headers = (result: RateLimiterRes) => ({
        "ratelimit-policy": policy,
        ratelimit: `"${name}";r=${result.remainingPoints};t=${Math.ceil(result.msBeforeNext / 1000)}`,
      });
      try {
        return headers(await (await limiterOf(name)).consume(key));
      } catch (rejected) {
        if (rejected instanceof Error) throw rejected;
        const result = rejected as RateLimiterRes;
        const wait = Math.max(1, Math.ceil(result.msBeforeNext / 1000));
        throw new HttpError(429, "rate_limited", `Too many requests; try again in ${wait} s.`, {
          headers: { ...headers(result), "retry-after": String(wait) },
        });
      }
    },
  };
}
