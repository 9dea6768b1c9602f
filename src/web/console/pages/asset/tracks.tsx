import { useEffect, useRef, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { duration } from "#web/console/format.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Track } from "#web/console/types.ts";
import { Lane } from "./lane.tsx";
import type { PlayerFrame } from "./player-frame.ts";
import type { SectionProps } from "./section.ts";
import { loadStoryboard, type Storyboard, tilesOf } from "./storyboard.ts";
import { StoryboardTile } from "./storyboard-tile.tsx";
import { texts } from "./texts.ts";
import { useAssetEvents } from "./use-asset-events.ts";

const ZOOMS = [1, 2, 4, 8, 16, 32] as const;
const IMAGES_PER_SCREEN = 10;
const MOST_IMAGES = 160;
const TICKS_PER_SCREEN = 8;
const TICK_SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

/** The least usual distance between times that needs at most `most` of them. */
const tickSeconds = (seconds: number, most: number): number =>
  TICK_SECONDS.find((one) => seconds / one <= most) ?? Math.ceil(seconds / most / 3600) * 3600;

/** Chapters and other tracks of an asset over a common axis of time. */
export default function Tracks({ asset, playback, player, reloadPlayer }: SectionProps) {
  const t = useTexts(texts);
  const { may } = useSession();
  const [zoom, setZoom] = useState<number>(1);
  const [isNew, setNew] = useState(false);
  const { failure, attempt } = useAttempt();
  const list = useList(() => vodbox.listTracks({ video_asset_id: asset.id }), [asset.id]);
  useAssetEvents(asset.id, "video.track.", list.reload);
  const storyboard = useResource(async () => playback && (await loadStoryboard(playback)), [playback]);
  // The duration of media that vodbox does not serve may be unknown.
  const durationMs = Math.round(asset.duration_seconds * 1000) || lastOf(list.items);
  const mayWrite = may("assets:write");
  const view = useRef<HTMLDivElement>(null);
  // The current position stays in the middle when the strip becomes longer.
  useEffect(() => {
    const { current } = view;
    const share = (player.seconds * 1000) / durationMs;
    if (current) current.scrollLeft = share * current.scrollWidth - current.clientWidth / 2;
  }, [zoom]);
  const chapters = list.items.find(({ kind }) => kind === "chapter");
  const set = async (body: { kind: string; name?: string; cues: NonNullable<Track["cues"]> }) => {
    await vodbox.setTrack({ video_asset_id: asset.id, body });
    list.reload();
    reloadPlayer();
  };
  const addFirstChapter = () => {
    const cue = { start_ms: Math.round(player.seconds * 1000), payload: { title: t("newChapter") } };
    return attempt(() => set({ kind: "chapter", cues: [cue] }));
  };
  const addTrack = async ({ kind = "", name }: Record<string, string>) => {
    await set({ kind, ...(name && { name }), cues: [] });
    setNew(false);
  };
  const changed = (track: Track) => {
    list.update((items) => items.map((one) => (one.id === track.id ? track : one)));
    if (track.kind === "chapter") reloadPlayer();
  };
  const removed = () => {
    list.reload();
    reloadPlayer();
  };
  return (
    <>
      <div class="page-head">
        <h2>{t("timeline")}</h2>
        <div class="row">
          <label class="row">
            <span>{t("zoom")}</span>
            <select value={zoom} onChange={({ currentTarget }) => setZoom(Number(currentTarget.value))}>
              {ZOOMS.map((one) => (
                <option key={one} value={one}>
                  {one} ×
                </option>
              ))}
            </select>
          </label>
          {mayWrite && (
            <>
              <button type="button" onClick={() => setNew(true)}>
                {t("newTrack")}
              </button>
              {!chapters && !list.isLoading && !list.hasMore && (
                <button type="button" class="primary" onClick={addFirstChapter}>
                  {t("addChapter")}
                </button>
              )}
            </>
          )}
        </div>
      </div>
      <ErrorNotice error={failure} />
      <div class="timeline" ref={view}>
        {/* Only the width depends on the zoom: the strip scrolls inside. */}
        <div class="timeline-strip" style={{ width: `${zoom * 100}%` }}>
          <Ruler player={player} durationMs={durationMs} zoom={zoom} storyboard={storyboard.value} />
          <ListView list={list} empty={t("noTracks")}>
            {(items) =>
              items.map((track) => (
                <Lane
                  key={track.id}
                  track={track}
                  player={player}
                  durationMs={durationMs}
                  mayWrite={mayWrite}
                  onChange={changed}
                  onRemove={removed}
                />
              ))
            }
          </ListView>
        </div>
      </div>
      {isNew && (
        <Dialog title={t("newTrack")} onClose={() => setNew(false)}>
          <Form submit={t("create")} onSubmit={addTrack}>
            <Field label={t("kind")} name="kind" hint={t("kindHint")} required />
            <Field label={t("name")} name="name" />
          </Form>
        </Dialog>
      )}
    </>
  );
}

/** The end of the last cue; at least a minute. */
const lastOf = (tracks: readonly Track[]): number =>
  tracks.reduce(
    (latest, { cues }) => (cues ?? []).reduce((end, { start_ms, end_ms }) => Math.max(end, end_ms ?? start_ms), latest),
    60_000,
  );

type RulerProps = { player: PlayerFrame; durationMs: number; zoom: number; storyboard: Storyboard | null };

/** The axis: images of the video, the current position, and times. */
function Ruler({ player, durationMs, zoom, storyboard }: RulerProps) {
  const t = useTexts(texts);
  const [ms, setMs] = useState(() => player.seconds * 1000);
  useEffect(() => player.onTime(() => setMs(player.seconds * 1000)), [player]);
  const images = Math.min(MOST_IMAGES, IMAGES_PER_SCREEN * zoom);
  const tiles = storyboard ? tilesOf(storyboard, images) : [];
  const tick = tickSeconds(durationMs / 1000, Math.min(MOST_IMAGES, TICKS_PER_SCREEN * zoom));
  const ticks = Math.ceil(durationMs / 1000 / tick);
  return (
    <>
      <span class="playhead" aria-hidden="true" style={{ left: `${(Math.min(ms, durationMs) / durationMs) * 100}%` }} />
      <div class="ruler">
        {storyboard && (
          <div class="film" aria-hidden="true">
            {tiles.map((tile, index) => (
              <span key={index} style={{ left: `${(index / tiles.length) * 100}%`, width: `${100 / tiles.length}%` }}>
                <StoryboardTile storyboard={storyboard} tile={tile} />
              </span>
            ))}
          </div>
        )}
        <div class="ticks" aria-hidden="true">
          {Array.from({ length: ticks }, (_, index) => (
            <span key={index} style={{ left: `${((index * tick * 1000) / durationMs) * 100}%` }}>
              {duration(index * tick)}
            </span>
          ))}
        </div>
        <input
          class="seek"
          type="range"
          aria-label={t("position")}
          aria-valuetext={duration(ms / 1000)}
          min={0}
          max={durationMs}
          step={100}
          value={ms}
          onInput={({ currentTarget }) => player.seek(Number(currentTarget.value) / 1000)}
        />
      </div>
    </>
  );
}
