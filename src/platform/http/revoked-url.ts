import { HttpError } from "#lib/base";

/** Throws 403 `address_revoked`: the signature of a URL is valid, but what it was signed for has ended. */
export const revoked = (reason: string): never => {
  throw new HttpError(403, "address_revoked", `${reason} This URL is no longer valid.`);
};
