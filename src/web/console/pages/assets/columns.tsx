import { Columns3 } from "lucide";
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { Time } from "#web/console/components/time.tsx";
import { bytes, duration, count as number } from "#web/console/format.ts";
import { remembered } from "#web/console/remembered.ts";
import { Icon } from "#web/console/shell/icon.tsx";
import { type Language, useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import { AssetState } from "./asset-state.tsx";
import { texts } from "./texts.ts";

type T = ReturnType<typeof useTexts<keyof typeof texts.en>>;
export type ColumnData = { language: Language; t: T; plays?: number | undefined; tenant?: string | undefined };

type Column = {
  title: (t: T) => string;
  /** In the grid of the list. */
  width: string;
  isForOperators?: true;
  cell(asset: Asset, data: ColumnData): ComponentChildren;
};

const NONE = "–";

/** What the list can show of a video next to its title, in this order. */
export const COLUMNS = {
  status: { title: (t) => t("status"), width: "9rem", cell: (asset) => <AssetState asset={asset} /> },
  duration: {
    title: (t) => t("duration"),
    width: "4rem",
    cell: (asset) => (asset.playback_status === "ready" ? duration(asset.duration_seconds) : NONE),
  },
  size: {
    title: (t) => t("size"),
    width: "5.5rem",
    cell: ({ storage_bytes }, { language }) => (storage_bytes > 0 ? bytes(storage_bytes, language) : NONE),
  },
  policy: { title: (t) => t("policyShort"), width: "4.5rem", cell: (asset, { t }) => t(asset.playback_policy) },
  plays: {
    title: (t) => t("playsOfMonth"),
    width: "5.5rem",
    cell: (_, { plays, language }) => (plays === undefined ? NONE : number(plays, language)),
  },
  tags: {
    title: (t) => t("tags"),
    width: "minmax(6rem, 14rem)",
    cell: ({ tags }) => {
      const text = Object.entries(tags)
        .map(([name, value]) => `${name}: ${value}`)
        .join(", ");
      return <span title={text}>{text || NONE}</span>;
    },
  },
  tenant: { title: (t) => t("tenant"), width: "8rem", isForOperators: true, cell: (_, { tenant }) => tenant ?? NONE },
  created: { title: (t) => t("created"), width: "11rem", cell: ({ created_at }) => <Time at={created_at} /> },
} satisfies Record<string, Column> as Record<ColumnName, Column>;
export type ColumnName = "status" | "duration" | "size" | "policy" | "plays" | "tags" | "tenant" | "created";

const NAMES = Object.keys(COLUMNS) as ColumnName[];
const USUAL: readonly ColumnName[] = ["status", "duration", "size", "policy", "created"];

export const columnsFor = (isOperator: boolean): ColumnName[] =>
  NAMES.filter((name) => isOperator || !COLUMNS[name].isForOperators);

/** Those that were chosen in this browser. */
export function chosenColumns(): ColumnName[] {
  const stored = remembered.columns.get();
  return stored === null ? [...USUAL] : NAMES.filter((name) => stored.split(",").includes(name));
}

type MenuProps = { chosen: readonly ColumnName[]; isOperator: boolean; onChange(chosen: ColumnName[]): void };

/** Chooses columns. The browser opens and closes it with Enter, Space and Escape. */
export function ColumnMenu({ chosen, isOperator, onChange }: MenuProps) {
  const t = useTexts(texts);
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const place = () => {
    const { bottom, right } = (button.current as HTMLButtonElement).getBoundingClientRect();
    const { style } = panel.current as HTMLDivElement;
    style.top = `${bottom + 4}px`;
    style.right = `${Math.max(0, document.documentElement.clientWidth - right)}px`;
  };
  const toggle = (name: ColumnName, isShown: boolean) => {
    const next = NAMES.filter((one) => (one === name ? isShown : chosen.includes(one)));
    remembered.columns.set(String(next));
    onChange(next);
  };
  return (
    <>
      <button ref={button} type="button" class="more" popovertarget={id} onClick={place}>
        <Icon node={Columns3} />
        {t("columns")}
      </button>
      <div id={id} ref={panel} popover="auto" class="more-menu">
        <fieldset class="column-menu">
          <legend class="unseen">{t("columns")}</legend>
          {columnsFor(isOperator).map((name) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={chosen.includes(name)}
                onChange={({ currentTarget }) => toggle(name, currentTarget.checked)}
              />
              {COLUMNS[name].title(t)}
            </label>
          ))}
        </fieldset>
      </div>
    </>
  );
}
