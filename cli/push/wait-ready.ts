import { basename } from "node:path";
import { UserError } from "../../src/lib/errors.ts";
import { sleep } from "../../src/lib/timers.ts";
import type { Asset } from "../../src/resources/assets/schema.ts";
import { RequestRefused } from "./http.ts";
import type { Pushed, Sender } from "./send.ts";

const LOOK_AGAIN_MS = 500;

/**
 * Waits until an uploaded video plays, showing the progress of its encode. Resolves with the URL of its watch page; null
 * when the key may not create playback tokens for a signed asset. Throws a UserError when the video cannot be encoded.
 */
export async function watchUrlOf({ call, patience, meter, server }: Sender, pushed: Pushed): Promise<string | null> {
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
  try {
    const { embed_url } = await patience.until(() => call<{ embed_url: string }>("GET", `/playback/${asset.id}`));
    return embed_url.replace("/embed/", "/watch/");
  } catch (error) {
    if (!(error instanceof RequestRefused) || error.status !== 403) throw error;
    return asset.playback_policy === "public" ? `${server}/watch/${asset.external_id}` : null;
  }
}
