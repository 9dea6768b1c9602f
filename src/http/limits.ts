import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
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
    live: config.rate_limit_live,
  };
  const limiters = new Map(
    Object.entries(rules).map(([name, rule]) => [
      name,
      new RateLimiterMemory({ keyPrefix: name, points: rule.requests, duration: rule.seconds }),
    ]),
  );
  return {
    async consume(name, caller, address) {
      if (caller.kind === "admin") return {};
      const rule = rules[name];
      const key = caller.kind === "key" ? `tenant:${caller.tenantId}` : `address:${address}`;
      const policy = `"${name}";q=${rule.requests};w=${rule.seconds}`;
      const headers = (result: RateLimiterRes) => ({
        "ratelimit-policy": policy,
        ratelimit: `"${name}";r=${result.remainingPoints};t=${Math.ceil(result.msBeforeNext / 1000)}`,
      });
      try {
        return headers(await (limiters.get(name) as RateLimiterMemory).consume(key));
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
