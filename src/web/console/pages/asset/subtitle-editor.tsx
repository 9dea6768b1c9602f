import { useEffect, useRef, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useDebounced } from "#web/console/hooks/use-debounced.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useUnsaved } from "#web/console/hooks/use-unsaved.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Subtitle } from "#web/console/types.ts";
import { type CueDocument, openCues, withAllTimes, withCue, withoutCue, withText, withTiming } from "./cue-document.ts";
import { CueRow } from "./cue-row.tsx";
import type { PlayerFrame } from "./player-frame.ts";
import { texts } from "./texts.ts";

type Props = { subtitle: Subtitle; player: PlayerFrame; onSaved(): void; onClose(): void };

/** The texts and times of a track. What is changed is shown over the video at once, and saved on request. */
export function SubtitleEditor(props: Props) {
  const t = useTexts(texts);
  const { asset_id: video_asset_id, id } = props.subtitle;
  const { value, error, reload } = useResource(() => vodbox.getSubtitle({ video_asset_id, id }), [video_asset_id, id]);
  if (error) return <ErrorNotice error={error} onRetry={reload} />;
  if (!value) return <p>{t("loading")}</p>;
  return <Editor {...props} content={value.content ?? ""} />;
}

const PER_PAGE = 50;
const PREVIEW_AFTER_MS = 150;
const NEW_CUE_MS = 2000;

function Editor({ subtitle, player, content, onSaved, onClose }: Props & { content: string }) {
  const t = useTexts(texts);
  const [draft, setDraft] = useState<CueDocument>(() => openCues(content));
  const [isText, setText] = useState(false);
  const [from, setFrom] = useState(0);
  // Fields keep what was typed; they are created again when the cues in the rows are others than before.
  const [revision, setRevision] = useState(0);
  const [isClosing, setClosing] = useState(false);
  const { failure, attempt } = useAttempt();
  const isChanged = draft.source !== content;
  useUnsaved(isChanged);
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.scrollIntoView({ block: "nearest" }), []);
  const shown = useDebounced(draft, PREVIEW_AFTER_MS);
  useEffect(() => player.preview(shown.cues), [shown, player]);
  useEffect(() => () => player.preview(null), [player]);

  const replace = (next: CueDocument) => {
    setDraft(next);
    setRevision((count) => count + 1);
  };
  const add = () => {
    const startMs = Math.round(player.seconds * 1000);
    const { document, index } = withCue(draft, { startMs, endMs: startMs + NEW_CUE_MS }, t("newCue"));
    replace(document);
    setFrom(Math.floor(index / PER_PAGE) * PER_PAGE);
  };
  const remove = (index: number) => {
    const next = withoutCue(draft, index);
    replace(next);
    if (from >= next.cues.length) setFrom(Math.max(0, from - PER_PAGE));
  };
  const retime = async ({ shift, stretch }: Record<string, string>) => {
    replace(withAllTimes(draft, Number(shift), Number(stretch)));
  };
  const save = () =>
    attempt(async () => {
      const { asset_id: video_asset_id, id } = subtitle;
      await vodbox.updateSubtitle({ video_asset_id, id, body: { content: draft.source } });
      onSaved();
    });
  const count = draft.cues.length;
  const rows = draft.cues.slice(from, from + PER_PAGE);
  return (
    <section ref={section} class="editor" aria-labelledby="subtitle-editor">
      <div class="page-head">
        <h2 id="subtitle-editor">{t("editing", { label: subtitle.label })}</h2>
        <div class="row">
          <div class="toggle">
            <button type="button" aria-pressed={!isText} onClick={() => setText(false)}>
              {t("cueList")}
            </button>
            <button type="button" aria-pressed={isText} onClick={() => setText(true)}>
              {t("asText")}
            </button>
          </div>
          <button type="button" onClick={() => (isChanged ? setClosing(true) : onClose())}>
            {t("close")}
          </button>
          <button type="button" class="primary" onClick={save} disabled={!isChanged}>
            {t("save")}
          </button>
        </div>
      </div>
      <p class="fine">{t("previewHint")}</p>
      <ErrorNotice error={failure} />
      {draft.faults.length > 0 && (
        <ul class="notice error">
          {draft.faults.map(({ line, message }) => (
            <li key={`${line} ${message}`}>{t("line", { line, message })}</li>
          ))}
        </ul>
      )}
      {isText ? (
        <label class="field">
          <span class="unseen">{t("wholeText")}</span>
          <textarea
            rows={16}
            key={revision}
            defaultValue={draft.source}
            onInput={({ currentTarget }) => setDraft(openCues(currentTarget.value))}
          />
        </label>
      ) : (
        <>
          <ol class="cues">
            {rows.map((cue, row) => (
              <CueRow
                key={`${revision} ${from + row}`}
                cue={cue}
                number={from + row + 1}
                onText={(text) => setDraft((now) => withText(now, from + row, text))}
                onTiming={(timing) => setDraft((now) => withTiming(now, from + row, timing))}
                onShow={() => {
                  player.pause();
                  player.seek(cue.startMs / 1000 + 0.01);
                }}
                onRemove={() => remove(from + row)}
              />
            ))}
          </ol>
          <div class="row">
            <button type="button" onClick={add}>
              {t("addCue")}
            </button>
            {count > PER_PAGE && (
              <>
                <button type="button" disabled={from === 0} onClick={() => setFrom(from - PER_PAGE)}>
                  {t("previous")}
                </button>
                <span class="fine">{t("pageOf", { from: from + 1, to: Math.min(from + PER_PAGE, count), count })}</span>
                <button type="button" disabled={from + PER_PAGE >= count} onClick={() => setFrom(from + PER_PAGE)}>
                  {t("next")}
                </button>
              </>
            )}
          </div>
          <details>
            <summary>{t("retime")}</summary>
            <Form submit={t("apply")} onSubmit={retime}>
              <Field label={t("shift")} name="shift" type="number" value="0" step="1" required />
              <Field
                label={t("stretch")}
                name="stretch"
                type="number"
                value="1"
                step="any"
                min="0.1"
                max="10"
                required
              />
            </Form>
          </details>
        </>
      )}
      {isClosing && <ConfirmDialog text={t("discardQuestion")} onConfirm={onClose} onClose={() => setClosing(false)} />}
    </section>
  );
}
