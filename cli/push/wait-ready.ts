import { basename } from "node:path";
import type { Asset } from "#features/assets/schema.ts";
import { sleep, UserError } from "#lib/base";
import type { Warning } from "#model/warnings.ts";
import { RequestRefused } from "./http.ts";
import type { Pushed, Sender } from "./send.ts";

const LOOK_AGAIN_MS = 500;

/**
 * Waits until an uploaded video plays, showing the progress of its encode. Resolves with the URL of its watch page, null when
 * the key may not create playback tokens for a signed asset; with what of the video was left out, and with whether all of it is
 * encoded: more may be left out by then. Throws a UserError when
 * the video cannot be encoded.
 */
export async function untilReady(
  { call, patience, meter, server }: Sender,
  pushed: Pushed,
): Promise<{ watch_url: string | null; warnings: Warning[]; encoding_status: Asset["encoding_status"] }> {
  const encode = meter.encode(basename(pushed.path));
  let asset: Asset;
  try {
    for (;;) {
      asset = await patience.until(() => call<Asset>("GET", `/assets/${pushed.asset_id}`));
      encode.seconds(asset.duration_seconds > 0 ? asset.duration_seconds : null);
      encode.fraction(asset.progress / 100);
      if (asset.playback_status === "ready") break;
      if (asset.playback_status === "errored")
        throw new UserError(
          `${pushed.path} was uploaded as asset ${asset.id}, but not encoded: ${asset.error?.message ?? "see vodbox admin job list"}`,
        );
      await sleep(LOOK_AGAIN_MS);
    }
  } finally {
    encode.end();
  }
  // Servers of earlier versions send none.
  const { warnings = [], encoding_status } = asset;
  try {
    const { embed_url } = await patience.until(() => call<{ embed_url: string }>("GET", `/playback/${asset.id}`));
    return { watch_url: embed_url.replace("/embed/", "/watch/"), warnings, encoding_status };
  } catch (error) {
    if (!(error instanceof RequestRefused) || error.status !== 403) throw error;
    const isPublic = asset.playback_policy === "public";
    return { watch_url: isPublic ? `${server}/watch/${asset.external_id}` : null, warnings, encoding_status };
  }
}
