import { createHmac, randomInt } from "node:crypto";
import { and, eq, lt } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, memoizeByObject, sha256 } from "#lib/base";
import { sealText, unsealText } from "#platform/config/sealed-text.ts";
import type { Db } from "#storage/db/open.ts";
import { recoveryCodes, type UserRow, users } from "#storage/db/schema.ts";

/** Time-based one-time passwords (RFC 6238), with the values that authenticator apps assume: SHA-1, six digits, 30 s. */
const PERIOD_MS = 30_000;
/** RFC 6238, 5.2: for delays, and clocks that differ. */
const STEPS_ASIDE = 1;
/** RFC 4226, 4: 160 bits. */
const SECRET_BYTES = 20;
const ISSUER = "vodbox";

const RECOVERY_CODES = 10;
/** 80 bits: a hash without a salt suffices. */
const RECOVERY_LENGTH = 16;
/** Crockford's base 32, in lower case. */
const LETTERS = "0123456789abcdefghjkmnpqrstvwxyz";

const keyOf = memoizeByObject((secrets: App["secrets"]) =>
  createHmac("sha256", secrets.signing_secret).update("second factors").digest(),
);
const contextOf = (userId: number) => `user:${userId}`;

/** A code that was wrong, or used before. It counts against the limit of the user. */
export class WrongCode extends HttpError {
  constructor(status: 401 | 403, code: string) {
    super(status, code, "The code is wrong, or was used already; enter the next one.");
  }
}

/** A new secret: in base 32, as a URI for authenticator apps, as the SVG of its QR code, and as it is stored. */
export async function newSecret(app: App, { id, emailAddress }: UserRow) {
  const [{ Secret, TOTP }, { renderSVG }] = await Promise.all([import("otpauth"), import("uqr")]);
  const secret = new Secret({ size: SECRET_BYTES });
  const uri = new TOTP({ issuer: ISSUER, label: emailAddress, secret }).toString();
  const sealed = sealText(keyOf(app.secrets), contextOf(id), secret.base32);
  return { secret: secret.base32, uri, qr_svg: renderSVG(uri, { border: 2 }), sealed };
}

/** The time step of a valid code; null for a wrong one. Throws 500 for a secret of another signing secret. */
async function stepOf(app: App, userId: number, sealed: string, code: string): Promise<number | null> {
  if (!/^\d{6}$/.test(code)) return null;
  const { Secret, TOTP } = await import("otpauth");
  const secret = Secret.fromBase32(unsealText(keyOf(app.secrets), contextOf(userId), sealed));
  const timestamp = app.clock.now();
  const delta = TOTP.validate({ token: code, secret, timestamp, window: STEPS_ASIDE });
  return delta === null ? null : Math.floor(timestamp / PERIOD_MS) + delta;
}

/** As a person types it: spaces and hyphens do not count. */
const plain = (code: string) => code.toLowerCase().replaceAll(/[\s-]/g, "");

/** Uses up a code of the user's second factor, or a recovery code. Returns whether there was one. */
async function useCode(tx: Db, app: App, user: UserRow, typed: string): Promise<boolean> {
  const code = plain(typed);
  if (user.totpSecret === null) return false;
  const step = await stepOf(app, user.id, user.totpSecret, code);
  if (step !== null) {
    const unused = and(eq(users.id, user.id), lt(users.totpStep, step));
    return (
      (await tx.update(users).set({ totpStep: step }).where(unused).returning({ id: users.id }).get()) !== undefined
    );
  }
  const own = and(eq(recoveryCodes.userId, user.id), eq(recoveryCodes.codeHash, sha256(code)));
  return (await tx.delete(recoveryCodes).where(own).returning({ id: recoveryCodes.id }).get()) !== undefined;
}

/** Throws 401 `totp_required` where the user has a second factor and no code was sent, and WrongCode for a wrong one. */
export async function requireSecondFactor(tx: Db, app: App, user: UserRow, code: string | undefined): Promise<void> {
  if (user.totpSecret === null) return;
  if (code === undefined)
    throw new HttpError(401, "totp_required", "Enter the code of your authenticator app, or a recovery code.");
  if (!(await useCode(tx, app, user, code))) throw new WrongCode(401, "unauthorized");
}

/** Switches the second factor on with a code of the pending secret, and returns the recovery codes. Throws 409, WrongCode. */
export async function confirmSecret(tx: Db, app: App, user: UserRow, code: string): Promise<string[]> {
  if (user.totpPending === null)
    throw new HttpError(409, "totp_not_started", "Request a secret with POST /api/v1/me/totp first.");
  const step = await stepOf(app, user.id, user.totpPending, plain(code));
  if (step === null) throw new WrongCode(403, "wrong_code");
  const set = { totpSecret: user.totpPending, totpPending: null, totpStep: step, updatedAt: app.clock.now() };
  await tx.update(users).set(set).where(eq(users.id, user.id));
  await tx.delete(recoveryCodes).where(eq(recoveryCodes.userId, user.id));
  const codes = Array.from({ length: RECOVERY_CODES }, newRecoveryCode);
  await tx.insert(recoveryCodes).values(codes.map((one) => ({ userId: user.id, codeHash: sha256(plain(one)) })));
  return codes;
}

/** `4mj7-0zp8-qwt1-sk7n` */
function newRecoveryCode(): string {
  const letters = Array.from({ length: RECOVERY_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return letters.replaceAll(/(.{4})(?=.)/g, "$1-");
}

/** Switches the second factor off, with a code. Throws 409 where it is off, and WrongCode. */
export async function removeSecret(tx: Db, app: App, user: UserRow, code: string): Promise<void> {
  if (user.totpSecret === null) throw new HttpError(409, "totp_off", "The second factor is off.");
  if (!(await useCode(tx, app, user, code))) throw new WrongCode(403, "wrong_code");
  await clearSecret(tx, app, user.id);
}

/** Switches the second factor off without a code: for the operator. */
export async function clearSecret(tx: Db, app: App, userId: number): Promise<void> {
  const set = { totpSecret: null, totpPending: null, updatedAt: app.clock.now() };
  await tx.update(users).set(set).where(eq(users.id, userId));
  await tx.delete(recoveryCodes).where(eq(recoveryCodes.userId, userId));
}
