import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { useVirtual } from "#web/console/hooks/use-virtual.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { Asset, AssetImages } from "#web/console/types.ts";
import { AssetState } from "./asset-state.tsx";
import { COLUMNS, type ColumnName, columnsOf } from "./columns.tsx";
import { dragged } from "./dragged.ts";
import { Poster } from "./poster.tsx";
import { isSelected, type Selection, withIds } from "./selection.ts";
import { texts } from "./texts.ts";
import type { AssetList } from "./use-assets.ts";
import { useByIds } from "./use-by-ids.ts";

/** Pixels, as in pages.css. */
const GAP = 16;
const ROW = { wide: 64, narrow: 88 };
const CARD = { least: 208, leastNarrow: 150, text: 64 };
const NARROW = 640;

type Props = {
  list: AssetList;
  count: number;
  layout: "grid" | "list";
  /** Those that were chosen; null: the usual ones. */
  columns: readonly ColumnName[] | null;
  /** Names of tenants, for operators. */
  tenants: ReadonlyMap<number, string>;
  selection: Selection;
  /** Null: nothing can be selected. */
  onSelect: ((selection: Selection) => void) | null;
};

/** The assets as posters or rows, of which only the visible ones are in the document. */
export function AssetItems({ list, count, layout, columns: chosen, tenants, selection, onSelect }: Props) {
  const t = useTexts(texts);
  const { may, isAdmin } = useSession();
  const element = useRef<HTMLUListElement>(null);
  const width = useWidth(element);
  const { columns, rowHeight } = measuresOf(layout, width);
  const { first, last, height, rows, scrollTo } = useVirtual(element, {
    rows: Math.ceil(count / columns),
    rowHeight,
  });
  const ready = list.loaded.filter(({ playback_status }) => playback_status === "ready").map(({ id }) => id);
  const images = useByIds(ready, may("playback:read") ? (ids) => vodbox.listAssetImages({ ids }) : null);
  const { shown: listed, tracks, least } = columnsOf(chosen, isAdmin, width);
  const style = { "--columns": tracks, "--least": `${least}px` };
  const plays = useByIds(
    list.loaded.map(({ id }) => id),
    layout === "list" && listed.includes("plays") ? (ids) => vodbox.listPlayCounts({ ids }) : null,
  );
  const anchor = useRef<number | null>(null);
  const [focused, setFocused] = useState<number | null>(null);
  const wanted = useRef<number | null>(null);
  const shown = Math.min(count, rows * columns);
  const from = first * columns;
  const to = Math.min(last * columns, shown);
  useLayoutEffect(() => {
    if (to > from) list.show(from, to - 1);
  }, [from, to, list.show, list.count]);
  // The keyboard's target may be rendered, and loaded, later than the key.
  useLayoutEffect(() => {
    if (wanted.current === null) return;
    const target = element.current?.querySelector<HTMLElement>(`[data-index="${wanted.current}"] a`);
    if (!target) return;
    wanted.current = null;
    target.focus({ preventScroll: true });
  });
  const toggle = async (index: number, id: number, isRange: boolean) => {
    if (!onSelect) return;
    const select = !isSelected(selection, id);
    const start = anchor.current;
    anchor.current = index;
    if (!isRange || start === null) return onSelect(withIds(selection, [id], select));
    const ids = await list.idsBetween(Math.min(start, index), Math.max(start, index));
    onSelect(withIds(selection, ids, select));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || focused === null) return;
    if ((event.target as HTMLElement).closest("[data-index]") === null) return;
    const page = Math.max(1, Math.floor(innerHeight / rowHeight) - 1) * columns;
    const steps: Record<string, number> = {
      ArrowDown: focused + columns,
      ArrowUp: focused - columns,
      PageDown: focused + page,
      PageUp: focused - page,
      Home: 0,
      End: shown - 1,
      ...(columns > 1 && { ArrowRight: focused + 1, ArrowLeft: focused - 1 }),
    };
    const next = steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const index = Math.max(0, Math.min(shown - 1, next));
    wanted.current = index;
    scrollTo(Math.floor(index / columns));
    // Renders also where the target is already there.
    setFocused(index);
  };
  const indexes = Array.from({ length: Math.max(0, to - from) }, (_, offset) => from + offset);
  return (
    <div class={layout === "list" ? "wide-list" : ""}>
      {layout === "list" && (
        // Each value has its own name for screen readers.
        <div class="assets list titles" aria-hidden="true" style={style}>
          <div class="item fine">
            {onSelect && <span class="item-check" />}
            <span>{t("title")}</span>
            {listed.map((name) => (
              <span key={name} class="item-extra">
                {COLUMNS[name].title(t)}
              </span>
            ))}
          </div>
        </div>
      )}
      <ul
        ref={element}
        // Safari treats a list without bullets as none.
        // biome-ignore lint/a11y/noRedundantRoles: as above.
        role="list"
        class={`assets ${layout}`}
        aria-label={t("assets")}
        style={{
          ...style,
          height: `${height}px`,
          paddingTop: `${first * rowHeight}px`,
          gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))`,
          gridAutoRows: `${rowHeight - (layout === "grid" ? GAP : 0)}px`,
        }}
        onKeyDown={onKeyDown}
        onFocusIn={({ target }) => {
          const item = (target as HTMLElement).closest<HTMLElement>("[data-index]");
          setFocused(item ? Number(item.dataset.index) : null);
        }}
        onFocusOut={() => setFocused(null)}
      >
        {indexes.map((index) => {
          const asset = list.at(index);
          return (
            <Item
              key={asset ? asset.id : `empty-${index}`}
              asset={asset}
              index={index}
              count={count}
              columns={layout === "list" ? listed : null}
              plays={asset && plays.get(asset.id)?.play_count}
              tenant={asset && tenants.get(asset.tenant_id)}
              images={asset && images.get(asset.id)}
              isSelected={asset !== undefined && isSelected(selection, asset.id)}
              isFocused={focused === index}
              onToggle={onSelect && ((id, isRange) => void toggle(index, id, isRange))}
              onDrag={(event, id) =>
                dragged.start(event, {
                  assets: isSelected(selection, id) ? selection : { isAll: false, ids: new Set([id]) },
                })
              }
            />
          );
        })}
      </ul>
      {shown < count && <p class="fine">{t("tooMany")}</p>}
    </div>
  );
}

function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    setWidth(element.current.clientWidth);
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

function measuresOf(layout: "grid" | "list", width: number): { columns: number; rowHeight: number } {
  if (layout === "list") return { columns: 1, rowHeight: width < NARROW ? ROW.narrow : ROW.wide };
  const least = width < NARROW ? CARD.leastNarrow : CARD.least;
  const columns = Math.max(1, Math.floor((width + GAP) / (least + GAP)));
  const poster = ((width - GAP * (columns - 1)) / columns) * (9 / 16);
  return { columns, rowHeight: Math.round(poster) + CARD.text + GAP };
}

type ItemProps = {
  asset: Asset | undefined;
  index: number;
  count: number;
  /** Null: a poster with its state. */
  columns: readonly ColumnName[] | null;
  plays: number | undefined;
  tenant: string | undefined;
  images: AssetImages | undefined;
  isSelected: boolean;
  isFocused: boolean;
  onToggle: ((id: number, isRange: boolean) => void) | null;
  onDrag(event: DragEvent, id: number): void;
};

function Item({ asset, index, count, columns, plays, tenant, images, ...item }: ItemProps) {
  const { isSelected, isFocused, onToggle, onDrag } = item;
  const t = useTexts(texts);
  const { language } = useLanguage();
  const place = { "aria-setsize": count, "aria-posinset": index + 1, "data-index": index };
  if (!asset)
    return (
      <li {...place} class="item loading" aria-busy="true">
        <span class="poster" />
        <span class="unseen">{t("loading")}</span>
      </li>
    );
  const isReady = asset.playback_status === "ready";
  return (
    <li
      {...place}
      class={isSelected ? "item selected" : "item"}
      draggable={onToggle !== null}
      onDragStart={(event) => onDrag(event, asset.id)}
      onDragEnd={() => dragged.end()}
    >
      {onToggle && (
        <input
          type="checkbox"
          class="item-check"
          checked={isSelected}
          aria-label={t("select", { name: asset.title })}
          onClick={(event) => onToggle(asset.id, event.shiftKey)}
        />
      )}
      <a href={pagePath(`assets/${asset.id}`)} class="card" draggable={false}>
        <Poster images={images} length={isReady ? asset.duration_seconds : null} isFocused={isFocused} />
        <span class="card-title">{asset.title}</span>
      </a>
      {columns === null && <AssetState asset={asset} />}
      {columns?.map((name) => (
        // Its name is in the titles above the list.
        <span key={name} class={`item-extra ${name}`}>
          <span class="unseen">{COLUMNS[name].title(t)}: </span>
          {COLUMNS[name].cell(asset, { language, t, plays, tenant })}
        </span>
      ))}
    </li>
  );
}
