import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type CueDocument, openCues } from "./cue-document.ts";
import { type EditHistory, edited, NO_EDITS, redone, undone } from "./edit-history.ts";

export const CUES_PER_PAGE = 50;

/**
 * Where the cursor goes after the rows were created again; `selection` are positions in the text. `isQuiet`: the focus
 * stays where it is.
 */
type Target = { cue: number; isQuiet: boolean; selection?: readonly [number, number] };

/** A text that is edited: its cues, those that are shown, the cue with the cursor, and what can be undone. */
export function useCueDraft(content: string) {
  const [draft, setDraft] = useState<CueDocument>(() => openCues(content));
  const [history, setHistory] = useState<EditHistory>(NO_EDITS);
  const [from, setFrom] = useState(0);
  // Fields keep what was typed; they are created again when the cues in the rows are others than before.
  const [revision, setRevision] = useState(0);
  const [target, setTarget] = useState<Target | null>(null);
  const fields = useRef(new Map<number, HTMLTextAreaElement>());
  const active = useRef(0);

  const draftRef = useRef(draft);
  draftRef.current = draft;
  const focus = (cue: number, selection?: readonly [number, number], isQuiet = false) => {
    const shown = Math.max(0, Math.min(cue, draftRef.current.cues.length - 1));
    active.current = shown;
    setFrom(Math.floor(shown / CUES_PER_PAGE) * CUES_PER_PAGE);
    setTarget({ cue: shown, isQuiet, ...(selection && { selection }) });
  };
  useLayoutEffect(() => {
    if (!target) return;
    const field = fields.current.get(target.cue);
    setTarget(null);
    if (!field) return;
    if (!target.isQuiet) field.focus();
    if (target.selection) field.setSelectionRange(...target.selection);
    field.closest("li")?.scrollIntoView({ block: "nearest" });
  }, [target, revision, from]);

  /** Applies an edit that the fields show already: typing. Edits of the same `step` are undone together. */
  const type = (edit: (now: CueDocument) => CueDocument, step: string) => {
    const { current: now } = draftRef;
    setHistory((known) => edited(known, now.source, step));
    draftRef.current = edit(now);
    setDraft(draftRef.current);
  };
  const show = (next: CueDocument) => {
    draftRef.current = next;
    setDraft(next);
    setRevision((count) => count + 1);
    setFrom((now) =>
      now < next.cues.length ? now : Math.floor(Math.max(0, next.cues.length - 1) / CUES_PER_PAGE) * CUES_PER_PAGE,
    );
  };
  /** Applies an edit that changes which cues there are, or all of them. */
  const replace = (next: CueDocument) => {
    if (next.source === draft.source) return;
    setHistory(edited(history, draft.source, null));
    show(next);
  };
  const step = (found: ReturnType<typeof undone>) => {
    if (!found) return;
    setHistory(found.history);
    const next = openCues(found.text);
    show(next);
    focus(firstDifference(draft, next));
  };
  return {
    draft,
    revision,
    from,
    setFrom,
    fields: fields.current,
    active,
    focus,
    type,
    replace,
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
    undo: () => step(undone(history, draft.source)),
    redo: () => step(redone(history, draft.source)),
  };
}

/** The first cue that differs, where an undone edit is to be seen. */
function firstDifference({ cues }: CueDocument, { cues: others }: CueDocument): number {
  const at = others.findIndex(({ text, startMs, endMs }, index) => {
    const cue = cues[index];
    return !cue || cue.text !== text || cue.startMs !== startMs || cue.endMs !== endMs;
  });
  return at === -1 ? Math.max(0, others.length - 1) : at;
}
