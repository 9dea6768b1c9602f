import { useId, useState } from "preact/hooks";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";
import { type TrackCue, titleOf, withTitle } from "./track-cues.ts";

type Props = {
  cue: TrackCue;
  /** Whether the whole payload can be edited, not only its title. */
  hasData: boolean;
  onChange(cue: TrackCue): void;
  onRemove(): void;
};

/** The fields of the selected cue of a track. */
export function CueForm({ cue, hasData, onChange, onRemove }: Props) {
  const t = useTexts(texts);
  const id = useId();
  const { end_ms, ...others } = cue;
  const milliseconds = (text: string) => Math.max(0, Math.round(Number(text) * 1000));
  return (
    <div class="cue-form">
      <div class="field">
        <label for={`${id}-title`}>{t("title")}</label>
        <input
          id={`${id}-title`}
          value={titleOf(cue)}
          onInput={({ currentTarget }) => onChange(withTitle(cue, currentTarget.value))}
        />
      </div>
      <div class="field">
        <label for={`${id}-start`}>{t("startSeconds")}</label>
        <input
          id={`${id}-start`}
          type="number"
          min={0}
          step={0.1}
          value={cue.start_ms / 1000}
          onChange={({ currentTarget }) => {
            const start_ms = milliseconds(currentTarget.value);
            onChange({ ...cue, start_ms, ...(end_ms !== undefined && { end_ms: Math.max(start_ms, end_ms) }) });
          }}
        />
      </div>
      <div class="field">
        <label for={`${id}-end`}>{t("endSeconds")}</label>
        <input
          id={`${id}-end`}
          type="number"
          min={0}
          step={0.1}
          value={end_ms === undefined ? "" : end_ms / 1000}
          onChange={({ currentTarget: { value } }) =>
            onChange(value === "" ? others : { ...others, end_ms: Math.max(cue.start_ms, milliseconds(value)) })
          }
        />
      </div>
      <button type="button" onClick={onRemove}>
        {t("remove")}
      </button>
      {hasData && <Data cue={cue} onChange={onChange} />}
    </div>
  );
}

function Data({ cue, onChange }: Pick<Props, "cue" | "onChange">) {
  const t = useTexts(texts);
  const id = useId();
  const [isBad, setBad] = useState(false);
  const change = (text: string) => {
    const payload = objectIn(text);
    setBad(payload === null);
    if (payload !== null) onChange({ ...cue, payload });
  };
  return (
    <details class="wide">
      <summary>{t("data")}</summary>
      <textarea
        rows={5}
        aria-label={t("data")}
        aria-invalid={isBad}
        aria-describedby={isBad ? id : undefined}
        defaultValue={JSON.stringify(cue.payload, null, 2)}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
      {isBad && (
        <small id={id} class="fault">
          {t("badJson")}
        </small>
      )}
    </details>
  );
}

function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
