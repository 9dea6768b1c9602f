import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { HttpError } from "#lib/base";

/** OWASP's password storage cheat sheet: 32 MiB and three passes, about 200 ms of one core. */
export const HASH_COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 2 ** 20 };
const SALT_BYTES = 16;
const KEY_BYTES = 32;
/** A flood of guesses uses one core and the memory of one hash; other requests are asked to retry later. */
const MAX_WAITING = 32;

const derive = (password: string, salt: Buffer): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    // RFC 8265, 4.2.2: passwords that look alike are equal, however they were typed.
    scrypt(password.normalize("NFC"), salt, KEY_BYTES, HASH_COST, (error, key) =>
      error ? reject(error) : resolve(key),
    ),
  );

let last: Promise<unknown> = Promise.resolve();
let waiting = 0;

/** One hash at a time. Throws 503 when too many are waiting. */
async function oneByOne<T>(work: () => Promise<T>): Promise<T> {
  if (waiting >= MAX_WAITING)
    throw new HttpError(503, "busy", "Too many concurrent sign-ins; try again shortly.", {
      headers: { "retry-after": "5" },
    });
  waiting++;
  const queued = last.then(work);
  last = queued.catch(() => {});
  return queued.finally(() => waiting--);
}

/** `scrypt$<salt>$<key>`, base64url (RFC 7914). */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const key = await oneByOne(() => derive(password, salt));
  return `scrypt$${salt.toString("base64url")}$${key.toString("base64url")}`;
}

const NOBODYS = `scrypt$${"A".repeat(22)}$${"A".repeat(43)}`;

/** Takes as long without a stored hash (null), so that the response time does not reveal whether a user exists. */
export async function isPassword(password: string, hash: string | null): Promise<boolean> {
  const [, salt = "", key = ""] = (hash ?? NOBODYS).split("$");
  const derived = await oneByOne(() => derive(password, Buffer.from(salt, "base64url")));
  return timingSafeEqual(derived, Buffer.from(key, "base64url")) && hash !== null;
}
