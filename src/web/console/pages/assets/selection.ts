/** Selected assets: some ids, or all that match the filters, except some. */
export type Selection = { isAll: boolean; ids: ReadonlySet<number> };

export const NOTHING: Selection = { isAll: false, ids: new Set() };

export const isSelected = ({ isAll, ids }: Selection, id: number) => ids.has(id) !== isAll;

/** `total`: how many match the filters. */
export const sizeOf = ({ isAll, ids }: Selection, total: number) => (isAll ? Math.max(0, total - ids.size) : ids.size);

/** With these ids selected, or not. */
export function withIds({ isAll, ids }: Selection, changed: readonly number[], selected: boolean): Selection {
  const next = new Set(ids);
  for (const id of changed)
    if (selected !== isAll) next.add(id);
    else next.delete(id);
  return { isAll, ids: next };
}
