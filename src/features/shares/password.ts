import { type App, forApp } from "#app.ts";
import { createKeyedLock, HttpError } from "#lib/base";
import { networkOf } from "#lib/network";
import { countWindows, tooMany } from "#platform/http/limits.ts";
import type { ShareRow } from "#storage/db/schema.ts";
import { isPassword } from "../credentials/devices/passwords.ts";

const RULE = { requests: 10, seconds: 60 };
/** Tries of one address and share that wait for earlier ones; further ones are too many. */
const MAX_WAITING = 32;

const tries = forApp(({ cache }) => ({
  failures: countWindows(RULE, { name: "share", redis: cache.redis }),
  withLock: createKeyedLock<string>(),
  waiting: new Map<string, number>(),
}));

/**
 * Checks the password of a share that has one. Throws 403 `wrong_password`, and 429 after ten wrong ones in a minute from
 * the address, whatever the password. One after another, so that concurrent guesses are not more.
 */
export async function requireSharePassword(
  app: App,
  { id, passwordHash }: Pick<ShareRow, "id" | "passwordHash">,
  password: string,
  address: string,
): Promise<void> {
  const { failures, withLock, waiting } = tries(app);
  const key = `${id} ${networkOf(address)}`;
  const others = waiting.get(key) ?? 0;
  if (others >= MAX_WAITING) throw tooMany(RULE.seconds);
  waiting.set(key, others + 1);
  try {
    await withLock(key, async () => {
      const { exceeded, waitSeconds } = await failures.hasAllowance(address, `share ${id}`);
      if (exceeded) throw tooMany(waitSeconds);
      if (await isPassword(password, passwordHash)) return;
      await failures.countAddress(address, `share ${id}`);
      throw new HttpError(403, "wrong_password", "The password is wrong.");
    });
  } finally {
    const left = (waiting.get(key) ?? 1) - 1;
    if (left > 0) waiting.set(key, left);
    else waiting.delete(key);
  }
}
