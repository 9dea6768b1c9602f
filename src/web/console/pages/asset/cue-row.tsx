import { useId, useState } from "preact/hooks";
import { type Cue, formatTime, readTime } from "#lib/subtitles/web";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Timing } from "./cue-document.ts";
import { texts } from "./texts.ts";

type Props = {
  cue: Cue;
  /** From 1. */
  number: number;
  onText(text: string): void;
  onTiming(timing: Timing): void;
  /** Shows the cue in the player. */
  onShow(): void;
  onRemove(): void;
};

/** One cue of a track. Fields keep what was typed until the row is another one; invalid times change nothing. */
export function CueRow({ cue, number, onText, onTiming, onShow, onRemove }: Props) {
  const t = useTexts(texts);
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
    <li>
      <span class="times">
        {timeField("start", "cueStart")}
        {timeField("end", "cueEnd")}
      </span>
      <textarea
        class="prose"
        rows={2}
        aria-label={t("cueText", { number })}
        defaultValue={cue.text}
        onFocus={onShow}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
      <span class="row">
        <button type="button" onClick={onShow}>
          {t("goTo")}
        </button>
        <button type="button" onClick={onRemove}>
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
