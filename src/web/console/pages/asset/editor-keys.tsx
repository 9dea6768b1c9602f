import { useTexts } from "#web/console/texts/texts.tsx";
import { editorTexts } from "./editor-texts.ts";

export type EditorCommand =
  | "play"
  | "previous"
  | "next"
  | "split"
  | "merge"
  | "add"
  | "remove"
  | "previousUncertain"
  | "nextUncertain"
  | "find"
  | "undo"
  | "redo"
  | "save"
  | "close";

const isMac = () => /mac/i.test(navigator.platform);

/** The command of a key, or null. Letters have Ctrl or ⌘, so that Alt writes what it writes. */
export function commandOf(event: KeyboardEvent): EditorCommand | null {
  const { key, altKey: alt, shiftKey: shift } = event;
  const ctrl = event.ctrlKey || event.metaKey;
  if (key === "Escape") return "close";
  if (ctrl && !alt) {
    if (key === "Enter") return shift ? "add" : "play";
    const letter = key.toLowerCase();
    if (letter === "z") return shift ? "redo" : "undo";
    if (shift) return null;
    return ({ y: "redo", s: "save", f: "find" } as const)[letter] ?? null;
  }
  if (!alt || ctrl) return null;
  if (key === "Enter") return shift ? "merge" : "split";
  if (key === "ArrowUp") return shift ? "previousUncertain" : "previous";
  if (key === "ArrowDown") return shift ? "nextUncertain" : "next";
  return key === "Backspace" && shift ? "remove" : null;
}

/** The keys of the editor and what they do. */
export function EditorKeys({ hasUncertain }: { hasUncertain: boolean }) {
  const t = useTexts(editorTexts);
  const ctrl = isMac() ? "⌘" : t("ctrl");
  const alt = isMac() ? "⌥" : "Alt";
  const shift = t("shift");
  const rows: [name: string, ...keys: string[][]][] = [
    [t("keyPlay"), [ctrl, t("enter")]],
    [t("keyMove"), [alt, "↑"], [alt, "↓"]],
    [t("keySplit"), [alt, t("enter")]],
    [t("keyMerge"), [alt, shift, t("enter")]],
    [t("keyAdd"), [ctrl, shift, t("enter")]],
    [t("keyRemove"), [alt, shift, t("backspace")]],
    ...(hasUncertain ? [[t("keyUncertain"), [alt, shift, "↑"], [alt, shift, "↓"]] as [string, ...string[][]]] : []),
    [t("keyFind"), [ctrl, "F"]],
    [t("keyUndo"), [ctrl, "Z"]],
    [t("keyRedo"), [ctrl, shift, "Z"]],
    [t("keySave"), [ctrl, "S"]],
    [t("keyClose"), [t("escape")]],
  ];
  return (
    <details class="keys" open={matchMedia("(min-width: 50rem)").matches}>
      <summary>{t("keys")}</summary>
      <dl>
        {rows.map(([name, ...alternatives]) => (
          <div key={name}>
            <dt>
              {alternatives.map((keys) => (
                <span key={keys.join()} class="combination">
                  {keys.map((one) => (
                    <kbd key={one}>{one}</kbd>
                  ))}
                </span>
              ))}
            </dt>
            <dd>{name}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
