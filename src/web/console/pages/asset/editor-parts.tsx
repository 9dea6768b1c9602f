import { Field, Form } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { editorTexts } from "./editor-texts.ts";
import { texts } from "./texts.ts";
import { CUES_PER_PAGE } from "./use-cue-draft.ts";

type ToolsProps = {
  /** Null where there is nothing to undo, or to do again. */
  undo: (() => void) | null;
  redo: (() => void) | null;
  /** What searches and marks the cues; absent where the whole text is edited. */
  cues?: { isSearching: boolean; onSearch(): void; uncertain: number; onUncertain(): void };
};

/** The toolbar of the editor. */
export function EditorTools({ undo, redo, cues }: ToolsProps) {
  const t = useTexts(editorTexts);
  return (
    <div class="row" role="toolbar" aria-label={t("tools")}>
      <button type="button" disabled={!undo} onClick={() => undo?.()}>
        {t("undo")}
      </button>
      <button type="button" disabled={!redo} onClick={() => redo?.()}>
        {t("redo")}
      </button>
      {cues && (
        <button type="button" aria-expanded={cues.isSearching} onClick={cues.onSearch}>
          {t("find")}
        </button>
      )}
      {cues && cues.uncertain > 0 && (
        <>
          <button type="button" onClick={cues.onUncertain}>
            {t("nextUncertain")}
          </button>
          <span class="fine">{t("uncertainCues", { count: cues.uncertain })}</span>
        </>
      )}
    </div>
  );
}

type PagesProps = { from: number; count: number; onAdd(): void; onPage(from: number): void };

/** What is below the cues: a button that adds one, and the pages of many. */
export function CuePages({ from, count, onAdd, onPage }: PagesProps) {
  const t = useTexts(texts);
  const to = Math.min(from + CUES_PER_PAGE, count);
  return (
    <div class="row">
      <button type="button" onClick={onAdd}>
        {t("addCue")}
      </button>
      {count > CUES_PER_PAGE && (
        <>
          <button type="button" disabled={from === 0} onClick={() => onPage(from - CUES_PER_PAGE)}>
            {t("previous")}
          </button>
          <span class="fine">{t("pageOf", { from: from + 1, to, count })}</span>
          <button type="button" disabled={to === count} onClick={() => onPage(from + CUES_PER_PAGE)}>
            {t("next")}
          </button>
        </>
      )}
    </div>
  );
}

/** Moves and stretches all times. */
export function Retime({ onRetime }: { onRetime(shiftMs: number, factor: number): void }) {
  const t = useTexts(texts);
  return (
    <details>
      <summary>{t("retime")}</summary>
      <Form submit={t("apply")} onSubmit={async ({ shift, stretch }) => onRetime(Number(shift), Number(stretch))}>
        <Field label={t("shift")} name="shift" type="number" value="0" step="1" required />
        <Field label={t("stretch")} name="stretch" type="number" value="1" step="any" min="0.1" max="10" required />
      </Form>
    </details>
  );
}
