import { Columns3 } from "lucide";
import type { ComponentChildren } from "preact";
import { PopoverMenu } from "#web/console/components/popover-menu.tsx";
import { Time } from "#web/console/components/time.tsx";
import { bytes, duration, count as number } from "#web/console/format.ts";
import { remembered } from "#web/console/remembered.ts";
import type { Language } from "#web/console/texts/dictionary.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import { AssetState } from "./asset-state.tsx";
import { texts } from "./texts.ts";

type T = ReturnType<typeof useTexts<typeof texts.en>>;
export type ColumnData = { language: Language; t: T; plays?: number | undefined; tenant?: string | undefined };

type Column = {
  title: (t: T) => string;
  /** Pixels. */
  width: number;
  isForOperators?: true;
  cell(asset: Asset, data: ColumnData): ComponentChildren;
};

const NONE = "–";

/** What the list can show of a video next to its title, in this order. */
export const COLUMNS = {
  status: { title: (t) => t("status"), width: 144, cell: (asset) => <AssetState asset={asset} /> },
  duration: {
    title: (t) => t("duration"),
    width: 64,
    cell: (asset) => (asset.playback_status === "ready" ? duration(asset.duration_seconds) : NONE),
  },
  size: {
    title: (t) => t("size"),
    width: 88,
    cell: ({ storage_bytes }, { language }) => (storage_bytes > 0 ? bytes(storage_bytes, language) : NONE),
  },
  policy: { title: (t) => t("policyShort"), width: 72, cell: (asset, { t }) => t(asset.playback_policy) },
  plays: {
    title: (t) => t("playsOfMonth"),
    width: 104,
    cell: (_, { plays, language }) => (plays === undefined ? NONE : number(plays, language)),
  },
  tags: {
    title: (t) => t("tags"),
    width: 176,
    cell: ({ tags }) => {
      const text = Object.entries(tags)
        .map(([name, value]) => `${name}: ${value}`)
        .join(", ");
      return <span title={text}>{text || NONE}</span>;
    },
  },
  tenant: { title: (t) => t("tenant"), width: 128, isForOperators: true, cell: (_, { tenant }) => tenant ?? NONE },
  created: { title: (t) => t("created"), width: 176, cell: ({ created_at }) => <Time at={created_at} /> },
} satisfies Record<string, Column> as Record<ColumnName, Column>;
export type ColumnName = "status" | "duration" | "size" | "policy" | "plays" | "tags" | "tenant" | "created";

const NAMES = Object.keys(COLUMNS) as ColumnName[];
const USUAL: readonly ColumnName[] = ["status", "duration", "size", "policy", "created"];

export const columnsFor = (isOperator: boolean): ColumnName[] =>
  NAMES.filter((name) => isOperator || !COLUMNS[name].isForOperators);

/** Those that were chosen in this browser; null: none were. */
export function chosenColumns(): ColumnName[] | null {
  const stored = remembered.columns.get();
  return stored === null ? null : NAMES.filter((name) => stored.split(",").includes(name));
}

/** Pixels: of the check box and the title, and between columns. */
const TITLE = { narrow: 200, wide: 300 };
const NARROW = 640;
const GAP = 12;

/** The columns of a list that is so wide, in pixels: those that were chosen, else the usual ones for which there is space. */
export function columnsOf(chosen: readonly ColumnName[] | null, isOperator: boolean, width: number) {
  const allowed = columnsFor(isOperator);
  const names = (chosen ?? USUAL).filter((name) => allowed.includes(name));
  const shown: ColumnName[] = [];
  let least = width < NARROW ? TITLE.narrow : TITLE.wide;
  for (const name of names) {
    const needed = COLUMNS[name].width + GAP;
    if (!chosen && least + needed > width) break;
    least += needed;
    shown.push(name);
  }
  return { shown, tracks: shown.map((name) => `${COLUMNS[name].width}px`).join(" "), least };
}

type MenuProps = { chosen: readonly ColumnName[] | null; isOperator: boolean; onChange(chosen: ColumnName[]): void };

/** Chooses columns. */
export function ColumnMenu({ chosen, isOperator, onChange }: MenuProps) {
  const t = useTexts(texts);
  const current = chosen ?? USUAL;
  const toggle = (name: ColumnName, isShown: boolean) => {
    const next = NAMES.filter((one) => (one === name ? isShown : current.includes(one)));
    remembered.columns.set(String(next));
    onChange(next);
  };
  return (
    <PopoverMenu icon={Columns3} text={t("columns")}>
      <fieldset class="column-menu">
        <legend class="unseen">{t("columns")}</legend>
        {columnsFor(isOperator).map((name) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={current.includes(name)}
              onChange={({ currentTarget }) => toggle(name, currentTarget.checked)}
            />
            {COLUMNS[name].title(t)}
          </label>
        ))}
      </fieldset>
    </PopoverMenu>
  );
}
