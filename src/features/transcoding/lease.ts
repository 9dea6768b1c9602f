import type { App } from "#app.ts";
import { HttpError, hmac, sameSecret, sha256 } from "#lib/base";

/**
 * What all leases have in common, whatever is leased: a job as a whole, a task of one, an added audio track, captions, or a part of them. A
 * lease has a token, of which only the hash is stored, and an end, which each heartbeat moves.
 */

/** The names that tokens are derived with. Others would invalidate the tokens of what runs. */
const NAMES = {
  job: "lease",
  task: "task lease",
  track: "audio track lease",
  captions: "caption lease",
  part: "caption part lease",
} as const;
export type LeaseKind = keyof typeof NAMES;
/** One lease of the row `id`: `number` is that of the attempt, and `key` the claim's Idempotency-Key. */
export type LeaseId = { id: number; number: number; key: string };

/** What a claim returns; `expiresAt` in milliseconds. */
export type Lease = { token: string; attemptId: number; expiresAt: number };
/** Who claims; the lease's token is bound to `key`, the claim's Idempotency-Key. */
export type Claimant = { key: string; workerId: string | null };

/**
 * 256 bits bound to the row, its attempt and the key: derived from a secret, so that a repeated claim gets the same token
 * and none is stored.
 */
export const leaseToken = ({ secrets }: App, kind: LeaseKind, { id, number, key }: LeaseId): string =>
  hmac(secrets.signing_secret, `${NAMES[kind]}\n${id}\n${number}\n${key}`);

/** What is stored of a token. */
export const leaseHashOf = (token: string): string => sha256(token);

/** Throws 409 `stale_lease`. */
export const stale = (message = "The lease has expired, ended or belongs to another attempt."): never => {
  throw new HttpError(409, "stale_lease", message);
};
/** Throws the 409 of a repeated claim: a worker that resumes late must not receive other work by repeating its request. */
export const staleKey = (): never => stale("The lease of this Idempotency-Key has ended; claim with a new key.");

/** What a route answers with `stale`. */
export const STALE = { 409: ["stale_lease"] };
/** The lease token of a callback; empty without one. */
export const leaseTokenOf = (headers: Headers): string => headers.get("x-svc-job-lease-token") ?? "";

/** Whether a token is the one of a stored hash; null: it was never leased. */
export const isHolder = (leaseHash: string | null | undefined, token: string): boolean =>
  typeof leaseHash === "string" && leaseHash !== "" && sameSecret(leaseHash, leaseHashOf(token));

/** Whether a lease that ends at a time, or that there is none of, is valid at `now`. */
export const isLeased = ({ leaseExpiresAt }: { leaseExpiresAt: number | null }, now: number): boolean =>
  leaseExpiresAt !== null && leaseExpiresAt > now;

export const leaseMs = ({ config }: App): number => config.lease_seconds * 1000;
/** When a lease ends that begins, or is renewed, now. */
export const leaseEnd = (app: App): number => app.clock.now() + leaseMs(app);
/** A heartbeat is expected every quarter of the lease. */
export const heartbeatSeconds = ({ config }: App): number => config.lease_seconds / 4;
