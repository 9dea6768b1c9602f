import { serverUrl } from "./own-script.ts";
import { expiryOf } from "./token-clock.ts";

export type Chapter = { start: number; end: number; title: string };
/** The public data of an asset; URLs contain the token. */
export type PlayerData = {
  id: string;
  title: string;
  playback_policy: "public" | "signed";
  duration_seconds: number;
  width: number | null;
  height: number | null;
  hls_url: string;
  poster_url: string | null;
  storyboard_url: string | null;
  subtitles: { language: string; label: string; url: string; is_default: boolean; role: string }[];
  chapters: Chapter[];
  accent_color: string | null;
  logo_url: string | null;
  download_url: string | null;
};

export type ErrorCode =
  | "asset_not_ready"
  | "asset_errored"
  | "playback_token_required"
  | "playback_token_expired"
  | "playback_token_invalid"
  | "not_found"
  | "network"
  | "media";
const REPORTED: readonly string[] = [
  "asset_not_ready",
  "asset_errored",
  "playback_token_required",
  "playback_token_invalid",
  "not_found",
] satisfies ErrorCode[];

export class PlayerError extends Error {
  readonly reason: ErrorCode;
  constructor(reason: ErrorCode) {
    super(reason);
    this.reason = reason;
  }
}

/** The server's response is the same for every refused token; whether it has merely expired is read from the token. */
export const refusedFor = (token: string | null): ErrorCode => {
  if (token === null) return "playback_token_required";
  return (expiryOf(token) ?? Number.POSITIVE_INFINITY) <= Date.now()
    ? "playback_token_expired"
    : "playback_token_invalid";
};

/** The public data of an asset. Throws PlayerError. */
export const loadPlayerData = async (id: string, token: string | null, signal: AbortSignal): Promise<PlayerData> => {
  const { body, base } = await loadPublic(`embed/${encodeURIComponent(id)}/player.json`, token, signal);
  return withAddresses(body as PlayerData, base);
};

/** JSON of the server, and its URL. Throws PlayerError. */
export async function loadPublic(
  path: string,
  token: string | null,
  signal: AbortSignal,
): Promise<{ body: unknown; base: string }> {
  const query = token === null ? "" : `?token=${encodeURIComponent(token)}`;
  try {
    const answer = await fetch(`${serverUrl}${path}${query}`, {
      signal,
      credentials: "omit",
      referrerPolicy: "no-referrer",
    });
    const body = await answer.json();
    if (answer.ok) return { body, base: answer.url };
    if (body.code === "playback_token_invalid") throw new PlayerError(refusedFor(token));
    throw new PlayerError(REPORTED.includes(body.code) ? body.code : "network");
  } catch (error) {
    throw error instanceof PlayerError || signal.aborted ? error : new PlayerError("network");
  }
}

/** The same URL with another token: in its query, or in its path when it comes from a playlist. */
export const carrying = (address: string, token: string) =>
  address
    .replace(/([?&]token=)[^&#]*/, (_, name) => name + encodeURIComponent(token))
    .replace(/(\/(?:media|live)\/[^/?#]+\/)~[^/?#]+/, (_, path) => `${path}~${token}`);

/** URLs of the server are paths only. */
function withAddresses(data: PlayerData, base: string): PlayerData {
  const whole = <T extends string | null>(address: T) =>
    (address === null ? address : new URL(address, base).href) as T;
  return {
    ...data,
    hls_url: whole(data.hls_url),
    poster_url: whole(data.poster_url),
    storyboard_url: whole(data.storyboard_url),
    logo_url: whole(data.logo_url ?? null),
    download_url: whole(data.download_url ?? null),
    subtitles: data.subtitles.map((track) => ({ ...track, url: whole(track.url) })),
  };
}
