import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useDebounced } from "#web/console/hooks/use-debounced.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useUnsaved } from "#web/console/hooks/use-unsaved.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Subtitle } from "#web/console/types.ts";
import { openCues, withAllTimes, withCue, withoutCue, withText, withTiming } from "./cue-document.ts";
import {
  matchBehind,
  matchesOf,
  type Search,
  type SpokenWord,
  uncertainOf,
  withMerged,
  withReplaced,
  withSplit,
} from "./cue-edits.ts";
import { CueRow } from "./cue-row.tsx";
import { commandOf, type EditorCommand, EditorKeys } from "./editor-keys.tsx";
import { CuePages, EditorTools, Retime } from "./editor-parts.tsx";
import { editorTexts } from "./editor-texts.ts";
import { FindBar } from "./find-bar.tsx";
import type { PlayerFrame } from "./player-frame.ts";
import { texts } from "./texts.ts";
import { CUES_PER_PAGE, useCueDraft } from "./use-cue-draft.ts";

type Props = {
  subtitle: Subtitle;
  player: PlayerFrame;
  /** Whether there are changes that are not saved. */
  onChanged(isChanged: boolean): void;
  onSaved(): void;
  onClose(): void;
};

/** The texts and times of a track. What is changed is shown over the video at once, and saved on request. */
export function SubtitleEditor(props: Props) {
  const t = useTexts(texts);
  const { asset_id: video_asset_id, id, source, status, language } = props.subtitle;
  const { value, error, reload } = useResource(() => vodbox.getSubtitle({ video_asset_id, id }), [video_asset_id, id]);
  const words = useResource(
    async () => (source === "auto" && status === "ready" ? wordsOf(video_asset_id, language) : []),
    [video_asset_id, id],
  );
  if (error) return <ErrorNotice error={error} onRetry={reload} />;
  if (!value) return <p>{t("loading")}</p>;
  return <Editor {...props} content={value.content ?? ""} words={words.value ?? []} />;
}

/** Words as recognized. Marks are a help: without them, the text is edited all the same. */
async function wordsOf(id: number, language: string): Promise<SpokenWord[]> {
  try {
    const transcript = await vodbox.getTranscript({ id, format: "json", language });
    return typeof transcript === "string" ? [] : (transcript.words ?? []);
  } catch {
    return [];
  }
}

const PREVIEW_AFTER_MS = 150;
const NEW_CUE_MS = 2000;

type EditorProps = Props & { content: string; words: readonly SpokenWord[] };

function Editor({ subtitle, player, content, words, onChanged, onSaved, onClose }: EditorProps) {
  const t = useTexts(texts);
  const own = useTexts(editorTexts);
  const toast = useToast();
  const state = useCueDraft(content);
  const { draft, revision, from, fields, active, focus, replace } = state;
  const [isText, setText] = useState(false);
  const [search, setSearch] = useState<Search | null>(null);
  const [finds, setFinds] = useState(0);
  const [match, setMatch] = useState(0);
  const [isClosing, setClosing] = useState(false);
  const { failure, attempt } = useAttempt();
  const isChanged = draft.source !== content;
  useUnsaved(isChanged);
  useEffect(() => onChanged(isChanged), [isChanged]);
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.scrollIntoView({ block: "nearest" }), []);
  const shown = useDebounced(draft, PREVIEW_AFTER_MS);
  useEffect(() => player.preview(shown.cues), [shown, player]);
  useEffect(() => () => player.preview(null), [player]);
  const uncertain = useMemo(() => uncertainOf(draft, words), [draft, words]);
  const matches = useMemo(() => (search ? matchesOf(draft, search) : []), [draft, search]);
  const count = draft.cues.length;

  const startOf = (index: number) => (draft.cues[index]?.startMs ?? 0) / 1000 + 0.01;
  const play = (index: number, mayPause = false) => {
    active.current = index;
    player.play(startOf(index), { mayPause });
  };
  const split = (index: number) => {
    const next = withSplit(draft, index, { at: fields.get(index)?.selectionStart ?? 0, words });
    if (!next) return toast(own("cannotSplit"));
    replace(next);
    focus(index + 1, [0, 0]);
  };
  const merge = (index: number) => {
    const end = draft.cues[index]?.text.length ?? 0;
    replace(withMerged(draft, index));
    focus(index, [end, end]);
  };
  const add = () => {
    const startMs = Math.round(player.seconds * 1000);
    const { document, index } = withCue(draft, { startMs, endMs: startMs + NEW_CUE_MS }, t("newCue"));
    replace(document);
    focus(index, [0, t("newCue").length]);
  };
  const remove = (index: number) => {
    const next = withoutCue(draft, index);
    replace(next);
    if (next.cues.length > 0) focus(index);
  };
  const moveToUncertain = (by: 1 | -1) => {
    const indexes = [...uncertain.keys()].sort((a, b) => a - b);
    const next =
      by === 1
        ? (indexes.find((index) => index > active.current) ?? indexes[0])
        : (indexes.findLast((index) => index < active.current) ?? indexes.at(-1));
    if (next !== undefined) focus(next);
  };
  const showMatch = (index: number, among = matches) => {
    const found = among[index];
    if (!found) return;
    setMatch(index);
    focus(found.cue, [found.from, found.to], true);
  };
  const replaceMatches = (text: string, isAll: boolean) => {
    const at = Math.min(match, matches.length - 1);
    const chosen = isAll ? matches : matches.slice(at, at + 1);
    const [first] = chosen;
    if (!search || !first) return;
    const next = withReplaced(draft, chosen, text);
    replace(next);
    if (isAll) return toast(own("replaced", { count: chosen.length }));
    const [before = "", after = ""] = [draft, next].map(({ cues }) => cues[first.cue]?.text);
    const left = matchesOf(next, search);
    showMatch(matchBehind(left, first, { before, after }), left);
  };
  const save = () =>
    attempt(async () => {
      const { asset_id: video_asset_id, id } = subtitle;
      await vodbox.updateSubtitle({ video_asset_id, id, body: { content: draft.source } });
      onSaved();
    });
  const run: Record<EditorCommand, () => void> = {
    play: () => play(active.current, true),
    previous: () => focus(active.current - 1),
    next: () => focus(active.current + 1),
    split: () => split(active.current),
    merge: () => merge(active.current),
    add,
    remove: () => remove(active.current),
    previousUncertain: () => moveToUncertain(-1),
    nextUncertain: () => moveToUncertain(1),
    find: () => {
      setSearch(search ?? { text: "", isExact: false });
      setFinds((times) => times + 1);
    },
    undo: state.undo,
    redo: state.redo,
    save: () => isChanged && save(),
    close: () => setSearch(null),
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const command = commandOf(event);
    const inFind = event.target instanceof HTMLElement && event.target.closest(".find-bar") !== null;
    if (!command || (command === "close" && !search)) return;
    // The browser's own undo is that of a single field.
    if ((inFind || isText) && (command === "undo" || command === "redo")) return;
    if (isText && command !== "save") return;
    event.preventDefault();
    run[command]();
    const found = matches[match];
    if (command === "close" && inFind) focus(active.current, found && [found.from, found.to]);
  };
  const rows = draft.cues.slice(from, from + CUES_PER_PAGE);
  return (
    <section ref={section} class="editor" aria-labelledby="subtitle-editor" onKeyDown={onKeyDown}>
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
      <EditorTools
        undo={state.canUndo ? state.undo : null}
        redo={state.canRedo ? state.redo : null}
        {...(!isText && {
          cues: {
            isSearching: search !== null,
            onSearch: search ? run.close : run.find,
            uncertain: uncertain.size,
            onUncertain: run.nextUncertain,
          },
        })}
      />
      {search && !isText && (
        <FindBar
          search={search}
          finds={finds}
          at={Math.min(match, matches.length - 1)}
          count={matches.length}
          onSearch={(next) => {
            setSearch(next);
            setMatch(0);
          }}
          onMove={(by) => showMatch((match + by + matches.length) % Math.max(1, matches.length))}
          onReplace={replaceMatches}
        />
      )}
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
            onInput={({ currentTarget }) => state.type(() => openCues(currentTarget.value), "source")}
          />
        </label>
      ) : (
        <>
          <ol class="cues">
            {rows.map((cue, row) => {
              const index = from + row;
              return (
                <CueRow
                  key={`${revision} ${index}`}
                  cue={cue}
                  number={index + 1}
                  isLast={index === count - 1}
                  isFound={matches[match]?.cue === index}
                  uncertain={uncertain.get(index) ?? []}
                  field={(element) => {
                    if (element) fields.set(index, element);
                    else fields.delete(index);
                  }}
                  onText={(text) =>
                    state.type((now) => withText(now, index, text), `text ${index} ${text.split(/\s+/).length}`)
                  }
                  onTiming={(timing) => state.type((now) => withTiming(now, index, timing), `times ${index}`)}
                  onActive={() => {
                    active.current = index;
                  }}
                  onShow={() => {
                    player.pause();
                    player.seek(startOf(index));
                  }}
                  onPlay={() => play(index)}
                  onSplit={() => split(index)}
                  onMerge={() => merge(index)}
                  onRemove={() => remove(index)}
                />
              );
            })}
          </ol>
          <CuePages from={from} count={count} onAdd={add} onPage={state.setFrom} />
          <EditorKeys hasUncertain={uncertain.size > 0} />
          <Retime onRetime={(shiftMs, factor) => replace(withAllTimes(draft, shiftMs, factor))} />
        </>
      )}
      {isClosing && <ConfirmDialog text={t("discardQuestion")} onConfirm={onClose} onClose={() => setClosing(false)} />}
    </section>
  );
}
