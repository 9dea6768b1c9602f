import { createHmac } from "node:crypto";
import {
  decodeJwt,
  decodeProtectedHeader,
  importSPKI,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
  SignJWT,
} from "jose";
import { LRUCache } from "lru-cache";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import type { AssetRow } from "#storage/db/schema.ts";
import type { PublicAsset } from "../assets/urls.ts";
import { activeSigningKeys } from "../credentials/signing-keys/active.ts";
import { findRestriction } from "../playback-restrictions/active.ts";
import { allows } from "../playback-restrictions/allows.ts";
import { requirePlayableShare, type ShareViewer } from "../shares/plays.ts";
import type { Audience } from "./audience.ts";

/** For an asset its number is also a valid subject; for a live channel only its path. */
type Bound = Pick<PublicAsset, "tenantId" | "externalId" | "playbackId"> & { id?: number };
export type PlaybackTokens = {
  /**
   * With `share`, for a viewer of a share: the token ends with it. With `restriction`, the id of a playback restriction. The default
   * audience is video.
   */
  sign(
    asset: Bound,
    expiresAtMs: number,
    limits?: { share?: ShareViewer; restriction?: string | null; audience?: Audience },
  ): Promise<string>;
  /**
   * Throws 403 `playback_token_invalid` for a token that is expired, altered, for another asset, signed by a key that
   * is not (or no longer) of the asset's tenant, of a share that has ended, without any of `audiences`, or with a playback
   * restriction that does not allow the request; the default audience is video. Returns the viewer of a token of a share, null for others.
   */
  verify(asset: Bound, token: string, audiences?: readonly Audience[]): Promise<ShareViewer | null>;
  /** For a request with these headers. Without them, tokens that name a playback restriction are refused. */
  of(headers: Headers): PlaybackTokens;
};
/** `keyId`: the tenant's key that signed it; null for our own. */
type Claims = {
  keyId: string | null;
  tenantId: number;
  subject: string;
  audiences: string[];
  endsAtMs: number;
  share: ShareViewer | null;
  /** The id of a playback restriction. */
  restriction: string | null;
};

const ALGORITHM = "HS256";
const MAX_KNOWN = 10_000;
/** The longest token that is cached, which bounds the memory of ten thousand. Longer ones do not fit URLs. */
const MAX_LENGTH = 4096;
/** Tolerance for the clock of a tenant's own server. */
const LEEWAY_SECONDS = 5;
/** The largest time of a `Date`. */
const LAST_SECOND = 8.64e12;

const refuse = (message: string): never => {
  throw new HttpError(403, "playback_token_invalid", message);
};
const notOurs = () =>
  refuse("The playback token has expired or is not signed by a key of this asset's tenant; request a new one.");

/**
 * JWTs (RFC 7519) bound to one asset of one tenant, issued here or by the tenant's own servers. The algorithm is
 * determined by the key, never by the token, which excludes `none` and a public key used as a secret (RFC 8725, 3.1).
 */
export function playbackTokens(app: App): PlaybackTokens {
  // Derived from the signing secret: the key for tokens must not sign leases or storage URLs.
  const ownKey = createHmac("sha256", app.secrets.signing_secret).update("playback tokens").digest();
  // A player sends the same token with hundreds of segments.
  const known = new LRUCache<string, Claims>({ max: MAX_KNOWN });
  const seconds = () => ({ currentDate: new Date(app.clock.now()) });

  async function read(token: string, tenantId: number): Promise<Claims> {
    if (token.length > MAX_LENGTH) return notOurs();
    const keyId = keyIdOf(token);
    if (keyId === undefined) return notOurs();
    if (keyId === null) {
      const payload = await checked(token, ownKey, { ...seconds(), algorithms: [ALGORITHM], requiredClaims: ["tid"] });
      return claimsOf(payload, { keyId, tenantId: Number(payload.tid), leewaySeconds: 0 });
    }
    const key = (await activeSigningKeys(app).find(tenantId, keyId)) ?? notOurs();
    const publicKey = await importSPKI(key.publicKey, key.algorithm);
    const options = { ...seconds(), algorithms: [key.algorithm], clockTolerance: LEEWAY_SECONDS };
    return claimsOf(await checked(token, publicKey, options), { keyId, tenantId, leewaySeconds: LEEWAY_SECONDS });
  }

  async function requireAllowed({ tenantId, restriction }: Claims, headers: Headers | null): Promise<void> {
    if (restriction === null) return;
    const found = await findRestriction(app, tenantId, restriction);
    if (!found || !headers || !allows(found, headers))
      refuse("The playback restriction of the token does not allow this request.");
  }

  const within = (headers: Headers | null): PlaybackTokens => ({
    of: within,
    sign: (asset, expiresAtMs, { share, restriction, audience = "v" } = {}) =>
      new SignJWT({
        tid: asset.tenantId,
        ...(share && shareClaims(share)),
        ...(restriction != null && { playback_restriction_id: restriction }),
      })
        .setProtectedHeader({ alg: ALGORITHM, typ: "JWT" })
        .setSubject(asset.playbackId ?? asset.externalId)
        .setAudience(audience)
        .setNotBefore(Math.floor(app.clock.now() / 1000) - 5)
        .setExpirationTime(Math.floor(expiresAtMs / 1000))
        .sign(ownKey),
    async verify(asset, token, audiences = ["v"]) {
      const remembered = known.get(token);
      const claims = remembered ?? (await read(token, asset.tenantId));
      if (claims.endsAtMs <= app.clock.now()) refuse("The playback token has expired; request a new one.");
      if (claims.tenantId !== asset.tenantId || !namesOf(asset).includes(claims.subject))
        refuse("The playback token is for another asset.");
      // A cached result must not outlive its key.
      if (remembered && claims.keyId !== null && !(await activeSigningKeys(app).find(claims.tenantId, claims.keyId)))
        notOurs();
      if (!remembered) known.set(token, claims);
      if (!audiences.some((each) => claims.audiences.includes(each)))
        refuse(`The playback token's aud must be ${audiences.join(" or ")} for this.`);
      await requireAllowed(claims, headers);
      if (claims.share) await requirePlayableShare(app, claims.share);
      return claims.share;
    },
  });
  return within(null);
}

/** Throws 403 `playback_token_required` without a token, and what `verify` throws. */
export async function requireToken(
  tokens: PlaybackTokens,
  asset: Bound,
  token: string | null,
  audiences?: readonly Audience[],
): Promise<ShareViewer | null> {
  if (!token) throw new HttpError(403, "playback_token_required", "This video requires a playback token.");
  return tokens.verify(asset, token, audiences);
}

/**
 * What `requireToken` does for signed playback. A public asset needs no token, and ignores all but the tokens of shares: their
 * plays are counted and end for it too.
 */
export async function requireAccess(
  tokens: PlaybackTokens,
  asset: Bound & Pick<AssetRow, "playbackPolicy">,
  token: string | null,
  audiences?: readonly Audience[],
): Promise<ShareViewer | null> {
  if (asset.playbackPolicy === "signed") return requireToken(tokens, asset, token, audiences);
  return token !== null && namesShare(token) ? tokens.verify(asset, token, audiences) : null;
}

/** The token of a request for media, which is in the path below a manifest and in the query of the first request. */
export function splitToken(path: string, query: URLSearchParams): { token: string | null; file: string } {
  const inPath = /^~([A-Za-z0-9._-]+)\//.exec(path);
  return {
    token: inPath?.[1] ?? query.get("token"),
    file: inPath ? path.slice(inPath[0].length) : path,
  };
}

/** A token of one playback id does not open another one, which may be deleted separately. */
const namesOf = ({ externalId, playbackId, id }: Bound) => [
  playbackId ?? externalId,
  ...(id === undefined ? [] : [String(id)]),
];

/**
 * The id of the key that signed a token, from the header (RFC 7515, 4.1.4) or, as Mux's JavaScript libraries do, from
 * the claims. Null when neither has one, undefined for a malformed token. Other references to keys, such as `jwk` or
 * `jku`, are untrusted and ignored.
 */
function keyIdOf(token: string): string | null | undefined {
  try {
    const keyId = decodeProtectedHeader(token).kid ?? decodeJwt(token).kid ?? null;
    return keyId === null || typeof keyId === "string" ? keyId : undefined;
  } catch {
    return undefined;
  }
}

type Key = Parameters<typeof jwtVerify>[1];
async function checked(
  token: string,
  key: Key,
  { requiredClaims = [], ...options }: JWTVerifyOptions,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, key, { ...options, requiredClaims: ["sub", "aud", "exp", ...requiredClaims] }))
      .payload;
  } catch {
    return notOurs();
  }
}

type Issuer = { keyId: string | null; tenantId: number; leewaySeconds: number };
function claimsOf(payload: JWTPayload, { leewaySeconds, ...issuer }: Issuer): Claims {
  const { sub, aud, exp = 0 } = payload;
  if (typeof sub !== "string" || exp > LAST_SECOND) return notOurs();
  const endsAtMs = (exp + leewaySeconds) * 1000;
  // A tenant's own servers issue no tokens of shares; what such a claim means there is unknown.
  const share = issuer.keyId === null ? shareOf(payload) : null;
  return {
    ...issuer,
    subject: sub,
    audiences: [aud ?? []].flat(),
    endsAtMs,
    share,
    restriction: restrictionIn(payload),
  };
}

/** The claim of Mux's tokens. Something that is no id is the id of nothing. */
const restrictionIn = ({ playback_restriction_id: id }: JWTPayload): string | null =>
  id === undefined || id === null ? null : String(id);

/** The playback restriction that a token names, which is not verified. Null without one. */
export const restrictionOf = (token: string): string | null => restrictionIn(decodeJwt(token));

const shareClaims = ({ shareId, viewer, mark }: ShareViewer) => ({ shr: shareId, vwr: viewer, pwd: mark });

function shareOf({ shr, vwr, pwd }: JWTPayload): ShareViewer | null {
  return typeof shr === "number" && typeof vwr === "string" && typeof pwd === "string"
    ? { shareId: shr, viewer: vwr, mark: pwd }
    : null;
}

/** Unverified. */
function namesShare(token: string): boolean {
  try {
    return token.length <= MAX_LENGTH && shareOf(decodeJwt(token)) !== null;
  } catch {
    return false;
  }
}
