import { useMemo, useState } from "preact/hooks";
import { Dialog } from "#web/console/components/dialog.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Collection } from "#web/console/types.ts";
import { pathsOf } from "./collection-tree.ts";
import { texts } from "./texts.ts";

/** More are found by typing. */
const SHOWN = 50;

type Props = {
  title: string;
  collections: Collection[];
  /** The choice of no collection. */
  none: string;
  onChoose(id: number | null): void;
  onClose(): void;
};

/** Chooses a collection by its path: what drag and drop does, for the keyboard and for phones. */
export function MoveDialog({ title, collections, none, onChoose, onClose }: Props) {
  const t = useTexts(texts);
  const [words, setWords] = useState("");
  const paths = useMemo(() => pathsOf(collections), [collections]);
  const wanted = words.trim().toLocaleLowerCase();
  const found = paths.filter(({ path }) => path.toLocaleLowerCase().includes(wanted)).slice(0, SHOWN);
  return (
    <Dialog title={title} onClose={onClose}>
      <label class="field">
        <span>{t("findCollection")}</span>
        <input type="search" value={words} onInput={({ currentTarget }) => setWords(currentTarget.value)} />
      </label>
      <ul class="choices">
        {wanted === "" && (
          <li>
            <button type="button" onClick={() => onChoose(null)}>
              {none}
            </button>
          </li>
        )}
        {found.map(({ id, path }) => (
          <li key={id}>
            <button type="button" onClick={() => onChoose(id)}>
              {path}
            </button>
          </li>
        ))}
      </ul>
      {wanted !== "" && found.length === 0 && <p class="fine">{t("nothingFound")}</p>}
      <div class="row end">
        <button type="button" onClick={onClose}>
          {t("cancel")}
        </button>
      </div>
    </Dialog>
  );
}
