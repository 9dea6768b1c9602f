import { createHmac } from "node:crypto";
import { jwtVerify, SignJWT } from "jose";
import { LRUCache } from "lru-cache";
import type { AssetRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { HttpError } from "../../lib/errors.ts";

type Bound = Pick<AssetRow, "id" | "tenantId" | "externalId">;
export type PlaybackTokens = {
  sign(asset: Bound, expiresAtMs: number): Promise<string>;
  /** Throws 403: `playback_token_invalid` for one that is expired, altered or another asset's. */
  verify(asset: Bound, token: string): Promise<void>;
};

const ALGORITHM = "HS256";
const MAX_KNOWN = 10_000;

const refuse = (message: string): never => {
  throw new HttpError(403, "playback_token_invalid", message);
};

/**
 * JWTs (RFC 7519) bound to one asset of one tenant. The list of algorithms is fixed, so that neither `none` nor a
 * public key passed off as a secret gets through (RFC 8725, 3.1).
 */
export function playbackTokens(app: App): PlaybackTokens {
  // Not the signing secret itself: what signs tokens must not sign leases or storage addresses.
  const key = createHmac("sha256", app.secrets.signing_secret).update("playback tokens").digest();
  // A player sends the same token with hundreds of segments.
  const known = new LRUCache<string, { sub: string; tid: number; exp: number }>({ max: MAX_KNOWN });

  async function read(token: string) {
    const found = known.get(token);
    if (found) return found;
    try {
      const currentDate = new Date(app.clock.now());
      const { payload } = await jwtVerify(token, key, {
        algorithms: [ALGORITHM],
        audience: "v",
        requiredClaims: ["sub", "exp", "tid"],
        currentDate,
      });
      const claims = { sub: String(payload.sub), tid: Number(payload.tid), exp: Number(payload.exp) };
      known.set(token, claims);
      return claims;
    } catch {
      return refuse("The playback token is expired or was not made by this server; ask for a new one.");
    }
  }

  return {
    sign: (asset, expiresAtMs) =>
      new SignJWT({ tid: asset.tenantId })
        .setProtectedHeader({ alg: ALGORITHM, typ: "JWT" })
        .setSubject(asset.externalId)
        .setAudience("v")
        .setNotBefore(Math.floor(app.clock.now() / 1000) - 5)
        .setExpirationTime(Math.floor(expiresAtMs / 1000))
        .sign(key),
    async verify(asset, token) {
      const claims = await read(token);
      if (claims.exp * 1000 <= app.clock.now()) refuse("The playback token has expired; ask for a new one.");
      if (claims.sub !== asset.externalId || claims.tid !== asset.tenantId)
        refuse("The playback token is for another asset.");
    },
  };
}
