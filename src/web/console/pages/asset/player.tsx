import { Progress } from "#web/console/components/progress.tsx";
import { ownUrl } from "#web/console/own-url.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset, Playback } from "#web/console/types.ts";
import type { PlayerFrame } from "./player-frame.ts";
import { texts } from "./texts.ts";

type Props = { playback: Playback | null; player: PlayerFrame; start: number };

/** The player's own page in a frame, which has a policy of its own. */
export function Player({ playback, player, start }: Props) {
  const t = useTexts(texts);
  if (!playback) return <div class="stand-in">{t("loading")}</div>;
  const url = ownUrl(playback.embed_url, "/embed/");
  url.searchParams.set("disable_tracking", "1");
  if (start > 0) url.searchParams.set("start_time", start.toFixed(3));
  return (
    <iframe
      class="player"
      title={t("player")}
      src={url.href}
      allow="autoplay; fullscreen"
      ref={player.attach}
      onLoad={player.loaded}
    />
  );
}

/** In place of the player: why there is none, or how far the encode is. */
export function Waiting({ asset: { progress, stage, error } }: { asset: Asset }) {
  const t = useTexts(texts);
  return (
    <div class="stand-in">
      <p>{error ? error.message : t("notReady")}</p>
      {!error && progress > 0 && (
        <p>
          {stage} <Progress value={progress / 100} label={t("encoding")} />
        </p>
      )}
    </div>
  );
}
