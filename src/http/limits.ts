import { LRUCache } from "lru-cache";
import type { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import type { Config } from "../config/load.ts";
import { HttpError } from "../lib/errors.ts";
import type { Caller } from "./caller.ts";
import { networkOf } from "./client-address.ts";
import type { LimitName } from "./route.ts";

export type Limits = {
  /** Counts one request. Gives the headers of draft-ietf-httpapi-ratelimit-headers; throws 429. */
  consume(name: LimitName, caller: Caller, address: string): Promise<Record<string, string>>;
  /** The header that says what is allowed, for what is not counted. */
  policyOf(name: LimitName): Record<string, string>;
};

export type Rule = { requests: number; seconds: number };

/** 11 MB of each limit. A flood from more addresses than that has room under the limit anyway. */
const MAX_ADDRESSES = 20_000;

/** Per tenant, or per address where there is none. The admin token is nobody's tenant and is not limited. */
export function createLimits(config: Config): Limits {
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
      const counted = windows.get(name) ?? countWindows(rules[name]);
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

/** 429, for `waitSeconds`. */
export function tooMany(waitSeconds: number, headers: Record<string, string> = {}): HttpError {
  const wait = Math.max(1, waitSeconds);
  return new HttpError(429, "rate_limited", `Too many requests; try again in ${wait} s.`, {
    headers: { ...headers, "retry-after": String(wait) },
  });
}

type Counted = { left: number; waitSeconds: number; exceeded: boolean };
type Windows = {
  countTenant(tenantId: number): Promise<Counted>;
  /** With `about`, that alone is counted. */
  countAddress(address: string, about?: string): Promise<Counted>;
  /** Whether there is room left, without counting. */
  lookAtAddress(address: string, about?: string): Promise<Counted>;
};

/** Fixed windows, each from its first request on. Of addresses, which anyone can have any number of, only so many are known. */
export function countWindows({ requests, seconds }: Rule): Windows {
  let limiter: Promise<RateLimiterMemory> | undefined;
  // Loaded at the first limited request: the package brings a driver for every database there is.
  const loaded = () => {
    limiter ??= import("rate-limiter-flexible").then(
      (library) => new library.RateLimiterMemory({ points: requests, duration: seconds }),
    );
    return limiter;
  };
  const addresses = new LRUCache<string, true>({
    max: MAX_ADDRESSES,
    dispose: (_, key) => void loaded().then((known) => known.delete(key)),
  });
  const told = ({ remainingPoints, msBeforeNext }: RateLimiterRes, exceeded: boolean): Counted => ({
    ...{ left: remainingPoints, waitSeconds: Math.ceil(msBeforeNext / 1000), exceeded },
  });
  async function count(key: string): Promise<Counted> {
    try {
      return told(await (await loaded()).consume(key), false);
    } catch (rejected) {
      if (rejected instanceof Error) throw rejected;
      return told(rejected as RateLimiterRes, true);
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
    async lookAtAddress(address, about = "") {
      const found = await (await loaded()).get(keyOf(address, about));
      return found
        ? told(found, found.consumedPoints >= requests)
        : { left: requests, waitSeconds: 0, exceeded: false };
    },
  };
}
