import { useId, useRef, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { duration } from "#web/console/format.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { ownUrl } from "#web/console/own-url.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import type { SectionProps } from "./section.ts";
import { loadStoryboard, tilesOf } from "./storyboard.ts";
import { StoryboardTile } from "./storyboard-tile.tsx";
import { texts } from "./texts.ts";

const MOST_FRAMES = 24;

export default function Poster({ asset, playback, player, reloadPlayer, onChange }: SectionProps) {
  const t = useTexts(texts);
  const { may } = useSession();
  const toast = useToast();
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const [isBusy, setBusy] = useState(false);
  const { failure, attempt } = useAttempt();
  const storyboard = useResource(async () => playback && (await loadStoryboard(playback)), [playback]);
  const change = async (work: () => Promise<Asset>) => {
    setBusy(true);
    await attempt(async () => {
      onChange(await work());
      toast(t("posterSaved"));
      reloadPlayer();
    });
    setBusy(false);
  };
  const setFrame = (time_seconds: number) => change(() => vodbox.setPoster({ id: asset.id, body: { time_seconds } }));
  const send = () => {
    const file = input.current?.files?.[0];
    if (file) void change(() => vodbox.setPoster({ id: asset.id, body: file }));
  };
  const poster = playback?.thumbnail_url ? ownUrl(playback.thumbnail_url, "/media/") : null;
  // Browsers keep the image of an address for a minute.
  poster?.searchParams.set("of", asset.updated_at);
  const board = storyboard.value;
  const mayWrite = may("assets:write") && asset.provider === "managed";
  return (
    <div class="halves">
      <section>
        <h2>{t("currentPoster")}</h2>
        <span class="poster">{poster && <img src={poster.href} alt={t("currentPoster")} />}</span>
        <p>{asset.poster_path === null ? t("automaticPoster") : t("chosenPoster")}</p>
        <ErrorNotice error={failure} />
        {mayWrite && (
          <>
            <div class="row">
              {playback && (
                <button type="button" class="primary" disabled={isBusy} onClick={() => setFrame(player.seconds)}>
                  {t("useCurrent")}
                </button>
              )}
              {asset.poster_path !== null && (
                <button
                  type="button"
                  disabled={isBusy}
                  onClick={() => change(() => vodbox.deletePoster({ id: asset.id }))}
                >
                  {t("resetPoster")}
                </button>
              )}
            </div>
            <div class="field">
              <label for={id}>{t("posterImage")}</label>
              <span class="row">
                <input id={id} ref={input} type="file" accept="image/jpeg,image/png,image/webp" />
                <button type="button" disabled={isBusy} onClick={send}>
                  {t("upload")}
                </button>
              </span>
            </div>
            <p class="fine">{t("posterHint")}</p>
          </>
        )}
      </section>
      {mayWrite && (
        <section>
          <h2>{t("frames")}</h2>
          {!storyboard.value && !storyboard.error && playback?.storyboard_url === null && (
            <p class="empty">{t("noStoryboard")}</p>
          )}
          {board && (
            <>
              <ul class="frames">
                {tilesOf(board, Math.min(MOST_FRAMES, board.tiles.length)).map((tile) => (
                  <li key={tile.start}>
                    <button
                      type="button"
                      class="frame-choice"
                      aria-pressed={chosen === tile.start}
                      aria-label={t("frameAt", { time: duration(tile.start) })}
                      onClick={() => {
                        setChosen(tile.start);
                        player.pause();
                        player.seek(tile.start);
                      }}
                    >
                      <StoryboardTile storyboard={board} tile={tile} />
                      <span class="length">{duration(tile.start)}</span>
                    </button>
                  </li>
                ))}
              </ul>
              <button
                type="button"
                disabled={isBusy || chosen === null}
                onClick={() => chosen !== null && setFrame(chosen)}
              >
                {t("useFrame")}
              </button>
            </>
          )}
        </section>
      )}
    </div>
  );
}
