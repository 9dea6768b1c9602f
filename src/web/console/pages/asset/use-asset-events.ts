import { useCallback } from "preact/hooks";
import { type LiveEvent, useLive } from "#web/console/hooks/live.ts";
import { useThrottled } from "#web/console/hooks/use-throttled.ts";

const AT_MOST_EVERY_MS = 1000;

/**
 * Calls `reload` after events of an asset whose name begins with `prefix`, and when the connection was lost. Not after its
 * deletion: there is nothing to load.
 */
export function useAssetEvents(assetId: number, prefix: string, reload: () => void): void {
  const soon = useThrottled(reload, AT_MOST_EVERY_MS);
  const onEvent = useCallback(
    ({ type, data }: LiveEvent) => {
      if (data.asset_id === String(assetId) && type.startsWith(prefix) && type !== "video.asset.deleted") soon();
    },
    [assetId, prefix, soon],
  );
  useLive(onEvent, soon);
}
