import type { Asset, Methods } from "../../../build/client/methods.ts";
import { sleep } from "./attempts.ts";
import { VodboxError } from "./error.ts";

const INTERVAL_MS = { first: 500, longest: 5000 };

/** Waits until an asset plays. Throws VodboxError with the asset's error when it cannot be played. */
export async function untilReady(client: Pick<Methods, "getAsset">, id: number, signal?: AbortSignal): Promise<Asset> {
  for (let ms = INTERVAL_MS.first; ; ms = Math.min(ms * 1.5, INTERVAL_MS.longest)) {
    const asset = await client.getAsset({ id }, { ...(signal && { signal }) });
    if (asset.playback_status === "ready") return asset;
    if (asset.playback_status === "errored") {
      const { code = "asset_errored", message } = asset.error ?? {};
      throw new VodboxError({ status: 200, code, message: message ?? "The asset could not be processed." });
    }
    await sleep(ms, signal);
  }
}
