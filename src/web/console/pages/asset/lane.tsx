import { useRef, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { duration } from "#web/console/format.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useUnsaved } from "#web/console/hooks/use-unsaved.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Track } from "#web/console/types.ts";
import { CueForm } from "./cue-form.tsx";
import { Edge } from "./edge.tsx";
import type { PlayerFrame } from "./player-frame.ts";
import { texts } from "./texts.ts";
import { endOf, SHORTEST_MS, type TrackCue, titleOf, withEnd, withStart } from "./track-cues.ts";

type Props = {
  track: Track;
  player: PlayerFrame;
  durationMs: number;
  mayWrite: boolean;
  onChange(track: Track): void;
  onRemove(): void;
};

/** One track on the timeline. Changes are a draft until they are saved. */
export function Lane({ track, player, durationMs, mayWrite, onChange, onRemove }: Props) {
  const t = useTexts(texts);
  const [draft, setDraft] = useState<TrackCue[] | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const [isDeleting, setDeleting] = useState(false);
  const { failure, attempt } = useAttempt();
  useUnsaved(draft !== null);
  const strip = useRef<HTMLDivElement>(null);
  const cues = draft ?? track.cues ?? [];
  const chosen = selected === null ? undefined : cues[selected];
  const at = { video_asset_id: track.asset_id, id: track.id };
  const discard = () => {
    setDraft(null);
    setSelected(null);
  };
  const save = () =>
    attempt(async () => {
      const saved = await vodbox.updateTrack({ ...at, body: { cues } });
      discard();
      onChange(saved);
    });
  const remove = () => {
    setDeleting(false);
    return attempt(async () => {
      await vodbox.deleteTrack(at);
      onRemove();
    });
  };
  const add = () => {
    const start_ms = Math.min(Math.round(player.seconds * 1000), Math.max(0, durationMs - SHORTEST_MS));
    const title = t(track.kind === "chapter" ? "newChapter" : "newMarker");
    setDraft([...cues, { start_ms, payload: { title } }]);
    setSelected(cues.length);
  };
  const show = (index: number) => {
    setSelected(index);
    player.seek((cues[index] as TrackCue).start_ms / 1000);
  };
  /** The time at a position on the page. */
  const msAt = (clientX: number) => {
    const { left = 0, width = 1 } = strip.current?.getBoundingClientRect() ?? {};
    return ((clientX - left) / width) * durationMs;
  };
  const share = (ms: number) => `${(Math.min(ms, durationMs) / durationMs) * 100}%`;
  return (
    <section class="lane" aria-label={`${track.kind} ${track.name}`}>
      <div class="lane-head row">
        <strong>{track.kind === "chapter" ? t("chapters") : track.kind}</strong>
        <span class="fine">{track.name}</span>
        {mayWrite && track.storage_key === null && (
          <>
            <button type="button" onClick={add}>
              {t(track.kind === "chapter" ? "addChapter" : "addMarker")}
            </button>
            {draft && (
              <>
                <button type="button" class="primary" onClick={save}>
                  {t("save")}
                </button>
                <button type="button" onClick={discard}>
                  {t("discard")}
                </button>
              </>
            )}
          </>
        )}
        {mayWrite && (
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            {t("deleteTrack")}
          </button>
        )}
      </div>
      <ErrorNotice error={failure} />
      {track.storage_key !== null && <p class="fine">{t("stored", { key: track.storage_key })}</p>}
      <div class="lane-strip" ref={strip}>
        {cues.map((cue, index) => {
          const end = endOf(cues, index, durationMs);
          const title = titleOf(cue) || t("untitled");
          return (
            <div
              key={index}
              class={index === selected ? "cue selected" : "cue"}
              style={{ left: share(cue.start_ms), width: share(Math.max(0, Math.min(end, durationMs) - cue.start_ms)) }}
            >
              <button type="button" class="cue-body" aria-pressed={index === selected} onClick={() => show(index)}>
                <span class="cue-title">{title}</span>
                <span class="unseen">{duration(cue.start_ms / 1000)}</span>
              </button>
              {mayWrite && index === selected && (
                <>
                  <Edge
                    side="start"
                    label={t("startOf", { title })}
                    ms={cue.start_ms}
                    mostMs={durationMs}
                    msAt={msAt}
                    onMove={(ms) => setDraft(withStart(cues, index, ms, durationMs))}
                  />
                  <Edge
                    side="end"
                    label={t("endOf", { title })}
                    ms={end}
                    mostMs={durationMs}
                    msAt={msAt}
                    onMove={(ms) => setDraft(withEnd(cues, index, ms, durationMs))}
                  />
                </>
              )}
            </div>
          );
        })}
      </div>
      {mayWrite && chosen && selected !== null && (
        <CueForm
          key={selected}
          cue={chosen}
          hasData={track.kind !== "chapter"}
          onChange={(cue) => setDraft(cues.map((one, index) => (index === selected ? cue : one)))}
          onRemove={() => {
            setDraft(cues.filter((_, index) => index !== selected));
            setSelected(null);
          }}
        />
      )}
      {isDeleting && (
        <ConfirmDialog text={t("deleteTrackQuestion")} onConfirm={remove} onClose={() => setDeleting(false)} />
      )}
    </section>
  );
}
