import { useId, useState } from "preact/hooks";
import { type Cue, formatTime, readTime } from "#lib/subtitles/web";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Timing } from "./cue-document.ts";
import { editorTexts } from "./editor-texts.ts";
import { texts } from "./texts.ts";

type Props = {
  cue: Cue;
  /** From 1. */
  number: number;
  isLast: boolean;
  /** Whether it contains the match of a search that is shown. */
  isFound: boolean;
  /** Words of which speech recognition was not certain. */
  uncertain: readonly string[];
  /** Where the field of its text is; null when the row is removed. */
  field(element: HTMLTextAreaElement | null): void;
  onText(text: string): void;
  onTiming(timing: Timing): void;
  /** The focus is in the row. */
  onActive(): void;
  /** Shows the cue in the player. */
  onShow(): void;
  onPlay(): void;
  onSplit(): void;
  onMerge(): void;
  onRemove(): void;
};

/** One cue of a track. Fields keep what was typed until the row is another one; invalid times change nothing. */
export function CueRow({ cue, number, isLast, isFound, uncertain, field, onText, onTiming, onShow, ...on }: Props) {
  const t = useTexts(texts);
  const own = useTexts(editorTexts);
  const id = useId();
  const [times, setTimes] = useState({ start: formatTime(cue.startMs), end: formatTime(cue.endMs) });
  const timing = timingOf(times);
  const change = (part: Partial<typeof times>) => {
    const next = { ...times, ...part };
    setTimes(next);
    const valid = timingOf(next);
    if (valid) onTiming(valid);
  };
  const timeField = (name: "start" | "end", label: "cueStart" | "cueEnd") => (
    <input
      class="time"
      type="text"
      aria-label={t(label, { number })}
      aria-invalid={timing === null}
      aria-describedby={timing === null ? id : undefined}
      defaultValue={times[name]}
      onInput={({ currentTarget }) => change({ [name]: currentTarget.value })}
    />
  );
  return (
    <li
      class={[uncertain.length > 0 && "uncertain", isFound && "found-cue"].filter(Boolean).join(" ")}
      onFocusIn={on.onActive}
    >
      <span class="times">
        {timeField("start", "cueStart")}
        {timeField("end", "cueEnd")}
      </span>
      <span class="cue-text">
        <textarea
          ref={field}
          class="prose"
          rows={2}
          aria-label={t("cueText", { number })}
          aria-describedby={uncertain.length > 0 ? `${id}-uncertain` : undefined}
          defaultValue={cue.text}
          onFocus={onShow}
          onInput={({ currentTarget }) => onText(currentTarget.value)}
        />
        {uncertain.length > 0 && (
          <small id={`${id}-uncertain`}>
            {own("uncertain")}{" "}
            {uncertain.map((word) => (
              <mark key={word}>{word}</mark>
            ))}
          </small>
        )}
      </span>
      <span class="cue-tools">
        <button type="button" aria-label={own("playCue", { number })} onClick={on.onPlay}>
          {own("play")}
        </button>
        {/* The cursor stays in the text, where the cue is split. */}
        <button
          type="button"
          aria-label={own("splitCue", { number })}
          onMouseDown={(event) => event.preventDefault()}
          onClick={on.onSplit}
        >
          {own("split")}
        </button>
        <button type="button" disabled={isLast} aria-label={own("mergeCue", { number })} onClick={on.onMerge}>
          {own("merge")}
        </button>
        <button type="button" aria-label={own("removeCue", { number })} onClick={on.onRemove}>
          {t("remove")}
        </button>
      </span>
      {timing === null && (
        <small id={id} class="fault">
          {t("badTime")}
        </small>
      )}
    </li>
  );
}

function timingOf({ start, end }: { start: string; end: string }): Timing | null {
  const startMs = readTime(start.trim());
  const endMs = readTime(end.trim());
  return startMs !== null && endMs !== null && startMs < endMs ? { startMs, endMs } : null;
}
