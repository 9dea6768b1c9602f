import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Search } from "./cue-edits.ts";
import { editorTexts } from "./editor-texts.ts";

type Props = {
  search: Search;
  /** How often the command was given: each time, the field gets the focus. */
  finds: number;
  /** The shown match, from 0; -1 for none. */
  at: number;
  count: number;
  onSearch(search: Search): void;
  onMove(by: 1 | -1): void;
  onReplace(text: string, isAll: boolean): void;
};

/** Find and replace. Enter moves to the next match, Shift and Enter to the previous one. */
export function FindBar({ search, finds, at, count, onSearch, onMove, onReplace }: Props) {
  const t = useTexts(editorTexts);
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const replacement = useRef<HTMLInputElement>(null);
  // Before the next key, which belongs to it.
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, [finds]);
  const replace = (isAll: boolean) => () => onReplace(replacement.current?.value ?? "", isAll);
  const isEmpty = count === 0;
  return (
    <search class="find-bar">
      <div class="field">
        <label for={`${id}-find`}>{t("findText")}</label>
        <input
          id={`${id}-find`}
          ref={field}
          value={search.text}
          onInput={({ currentTarget }) => onSearch({ ...search, text: currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.altKey) return;
            event.preventDefault();
            onMove(event.shiftKey ? -1 : 1);
          }}
        />
      </div>
      <div class="field">
        <label for={`${id}-replace`}>{t("replaceWith")}</label>
        <input
          id={`${id}-replace`}
          ref={replacement}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.altKey) return;
            event.preventDefault();
            replace(false)();
          }}
        />
      </div>
      <div class="row wide">
        <label class="check">
          <input
            type="checkbox"
            checked={search.isExact}
            onChange={({ currentTarget }) => onSearch({ ...search, isExact: currentTarget.checked })}
          />{" "}
          {t("matchCase")}
        </label>
        <button type="button" disabled={isEmpty} aria-label={t("previousMatch")} onClick={() => onMove(-1)}>
          ↑
        </button>
        <button type="button" disabled={isEmpty} aria-label={t("nextMatch")} onClick={() => onMove(1)}>
          ↓
        </button>
        <button type="button" disabled={isEmpty} onClick={replace(false)}>
          {t("replace")}
        </button>
        <button type="button" disabled={isEmpty} onClick={replace(true)}>
          {t("replaceAll")}
        </button>
        <span class="fine" role="status">
          {search.text === "" ? "" : isEmpty ? t("noMatches") : t("matches", { at: at + 1, count })}
        </span>
      </div>
    </search>
  );
}
