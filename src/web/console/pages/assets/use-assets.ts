import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Params } from "#clients/typescript/types.ts";
import { vodbox } from "#web/console/api.ts";
import type { Asset } from "#web/console/types.ts";

/** Assets of one request. */
export const PAGE = 100;
/** Pages that are kept: what is visible, and what is near it. */
const KEPT = 6;
/** A position that is only passed while scrolling is not loaded. */
const SETTLE_MS = 60;
/** Between two loads after changes: at least this, and so long that they take at most a twentieth of the time. */
const RELOAD_MS = 1000;
const RELOAD_SHARE = 20;

export type AssetList = {
  /** All that match; null until it is known. */
  count: number | null;
  /** The asset at a position; undefined until it is loaded. */
  at(index: number): Asset | undefined;
  /** Assets that are in memory. */
  loaded: Asset[];
  /** Loads what is visible. */
  show(first: number, last: number): void;
  /** Ids from one position to another, both inclusive. */
  idsBetween(from: number, to: number): Promise<number[]>;
  error: unknown;
  reload(): void;
  /** Loads again soon, however many changes there are. */
  reloadSoon(): void;
  patch(id: number, fields: Partial<Asset>): void;
};

/** A list of assets of any length, of which a few pages are in memory. Begins again when `params` differ. */
export function useAssets(params: Params<"listAssets">): AssetList {
  const source = JSON.stringify(params);
  const [state, setState] = useState<{ source: string; store: Store }>();
  const [version, setVersion] = useState(0);
  const store = useMemo(() => new Store(params), [source]);
  useEffect(() => {
    store.onChange = () => setVersion((known) => known + 1);
    setState({ source, store });
    store.reload();
    return () => store.close();
  }, [store]);
  // While a new list is loading, the one before is shown.
  const shown = useRef(store);
  if (state?.store === store && (store.count !== null || store.error !== null)) shown.current = store;
  const current = shown.current;
  const { count, error } = current;
  const show = useCallback((first: number, last: number) => current.show(first, last), [current]);
  return useMemo(
    () => ({
      count,
      error,
      show,
      loaded: current.loaded(),
      at: (index) => current.at(index),
      idsBetween: (from, to) => store.idsBetween(from, to),
      reload: () => store.reload(),
      reloadSoon: () => store.reloadSoon(),
      patch: (id, fields) => current.patch(id, fields),
    }),
    [current, store, version, count, error, show],
  );
}

class Store {
  count: number | null = null;
  error: unknown = null;
  onChange: () => void = () => {};
  readonly #params: Params<"listAssets">;
  #cursors: string[] = [];
  /** By number, the last used ones at the end. */
  #pages = new Map<number, Asset[]>();
  #loading = new Set<number>();
  #visible: [number, number] = [0, 0];
  #settle: ReturnType<typeof setTimeout> | undefined;
  #soon: ReturnType<typeof setTimeout> | undefined;
  #reloadedAt = 0;
  #reloadMs = 0;
  /** Responses of an earlier load are ignored. */
  #load = 0;
  #isClosed = false;

  constructor(params: Params<"listAssets">) {
    this.#params = params;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#settle);
    clearTimeout(this.#soon);
  }

  at(index: number): Asset | undefined {
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  loaded(): Asset[] {
    return [...this.#pages.values()].flat();
  }

  async reload(): Promise<void> {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    const load = ++this.#load;
    const from = performance.now();
    try {
      const counted = vodbox.listAssetPages({ ...this.#params, limit: PAGE });
      // The first page needs no cursor.
      const isAtStart = this.#visible[0] < PAGE;
      const [{ count, cursors }] = await Promise.all([counted, isAtStart && this.#loadPage(0, load)]);
      if (load !== this.#load || this.#isClosed) return;
      this.#cursors = cursors;
      const others = this.#wanted(count).filter((page) => page > 0 || !isAtStart);
      await Promise.all(others.map((page) => this.#loadPage(page, load)));
      if (load !== this.#load || this.#isClosed) return;
      // Pages that are not visible are loaded again when they are.
      const visible = new Set(this.#wanted(count));
      for (const page of this.#pages.keys()) if (!visible.has(page)) this.#pages.delete(page);
      this.count = count;
      this.error = null;
    } catch (error) {
      if (load === this.#load) this.error = error;
    }
    this.#reloadMs = performance.now() - from;
    this.#reloadedAt = performance.now();
    if (!this.#isClosed) this.onChange();
  }

  reloadSoon(): void {
    if (this.#soon !== undefined || this.#isClosed) return;
    const next = this.#reloadedAt + Math.max(RELOAD_MS, this.#reloadMs * RELOAD_SHARE);
    this.#soon = setTimeout(() => this.reload(), Math.max(RELOAD_MS / 4, next - performance.now()));
  }

  show(first: number, last: number): void {
    this.#visible = [first, last];
    if (this.count === null || this.#missing().length === 0) return;
    clearTimeout(this.#settle);
    this.#settle = setTimeout(() => void this.#loadMissing(), SETTLE_MS);
  }

  patch(id: number, fields: Partial<Asset>): void {
    for (const items of this.#pages.values()) {
      const index = items.findIndex((item) => item.id === id);
      if (index === -1) continue;
      items[index] = { ...(items[index] as Asset), ...fields };
      this.onChange();
    }
  }

  async idsBetween(from: number, to: number): Promise<number[]> {
    const ids: number[] = [];
    for (let page = Math.floor(from / PAGE); page <= Math.floor(to / PAGE); page++) {
      const items = this.#pages.get(page) ?? (await this.#request(page));
      const start = page * PAGE;
      for (const [index, { id }] of items.entries()) if (start + index >= from && start + index <= to) ids.push(id);
    }
    return ids;
  }

  #wanted(count: number): number[] {
    const [first, last] = this.#visible;
    const [from, to] = [first, Math.min(last, Math.max(0, count - 1))].map((index) => Math.floor(index / PAGE));
    const pages: number[] = [];
    for (let page = Math.min(from as number, to as number); page <= (to as number); page++) pages.push(page);
    return pages;
  }

  #missing(): number[] {
    return this.#wanted(this.count ?? 0).filter((page) => !this.#pages.has(page) && !this.#loading.has(page));
  }

  async #loadMissing(): Promise<void> {
    try {
      await Promise.all(this.#missing().map((page) => this.#loadPage(page, this.#load)));
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    if (!this.#isClosed) this.onChange();
  }

  async #loadPage(page: number, load: number): Promise<void> {
    this.#loading.add(page);
    try {
      const items = await this.#request(page);
      if (load !== this.#load || this.#isClosed) return;
      this.#pages.delete(page);
      this.#pages.set(page, items);
      for (const old of this.#pages.keys()) {
        if (this.#pages.size <= KEPT) break;
        this.#pages.delete(old);
      }
    } finally {
      this.#loading.delete(page);
    }
  }

  async #request(page: number): Promise<Asset[]> {
    const cursor = page === 0 ? undefined : this.#cursors[page - 1];
    // Fewer match than when the pages were counted.
    if (page > 0 && cursor === undefined) return [];
    return (await vodbox.listAssets(this.#params).page({ limit: PAGE, ...(cursor !== undefined && { cursor }) })).items;
  }
}
