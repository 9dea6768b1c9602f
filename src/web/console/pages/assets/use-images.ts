import { useEffect, useRef, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import type { Asset, AssetImages } from "#web/console/types.ts";

const PER_REQUEST = 100;

/** URLs of images by asset id. Each asset is requested once while it is in memory, many of them together. */
export function useImages(assets: Asset[], isAllowed: boolean): ReadonlyMap<number, AssetImages> {
  const [found, setFound] = useState<ReadonlyMap<number, AssetImages>>(new Map());
  const requested = useRef(new Set<number>());
  useEffect(() => {
    if (!isAllowed) return;
    const present = new Set(assets.map(({ id }) => id));
    for (const id of requested.current) if (!present.has(id)) requested.current.delete(id);
    const ready = assets.filter(({ playback_status, id }) => playback_status === "ready" && !requested.current.has(id));
    for (let from = 0; from < ready.length; from += PER_REQUEST) {
      const ids = ready.slice(from, from + PER_REQUEST).map(({ id }) => id);
      for (const id of ids) requested.current.add(id);
      vodbox.listAssetImages({ ids: String(ids) }).then(
        (images) =>
          setFound((known) => {
            const kept = [...known].filter(([id]) => requested.current.has(id));
            return new Map([...kept, ...images.map((each) => [each.asset_id, each] as const)]);
          }),
        // Without its poster a video is still listed; the next change of the list tries again.
        () => {
          for (const id of ids) requested.current.delete(id);
        },
      );
    }
  }, [assets, isAllowed]);
  return found;
}
