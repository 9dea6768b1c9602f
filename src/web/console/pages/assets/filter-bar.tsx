import { useEffect, useRef, useState } from "preact/hooks";
import { ASSET_PLAYBACK_POLICY, ASSET_PLAYBACK_STATUS, LIST_ASSETS_SORT } from "#build/client/enums.ts";
import { StatusFilter } from "#web/console/components/status-filter.tsx";
import { useDebounced } from "#web/console/hooks/use-debounced.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Tenant } from "#web/console/types.ts";
import { type Filters, isSortable, type Sort } from "./filters.ts";
import { texts } from "./texts.ts";

/** How long typing rests before a search. */
const TYPING_MS = 250;

type Props = {
  filters: Filters;
  isAdmin: boolean;
  tenants: Tenant[];
  layout: "grid" | "list";
  onChange(fields: Partial<Filters>, replace?: boolean): void;
  onLayout(layout: "grid" | "list"): void;
};

/** Search, filters, order and layout of the list. */
export function FilterBar({ filters, isAdmin, tenants, layout, onChange, onLayout }: Props) {
  const t = useTexts(texts);
  const [words, setWords] = useState(filters.q);
  const settled = useDebounced(words, TYPING_MS);
  const inAddress = useRef(filters.q);
  useEffect(() => {
    if (settled === filters.q) return;
    inAddress.current = settled;
    // What is typed replaces the address: going back leads to what was before the search.
    onChange({ q: settled }, filters.q !== "");
  }, [settled]);
  useEffect(() => {
    // Back and forward. What was typed since this address was made by typing must not be lost.
    if (filters.q !== inAddress.current) setWords(filters.q);
    inAddress.current = filters.q;
  }, [filters.q]);
  const sorts = isSortable(filters, isAdmin) ? LIST_ASSETS_SORT : (["newest", "oldest"] as const);
  const names: Record<Sort, string> = {
    newest: t("newest"),
    oldest: t("oldest"),
    title: t("byTitle"),
    duration: t("byDuration"),
    size: t("bySize"),
  };
  return (
    <search class="row filters">
      <label class="grow">
        <span class="unseen">{t("search")}</span>
        <input
          type="search"
          placeholder={t("search")}
          value={words}
          maxLength={200}
          onInput={({ currentTarget }) => setWords(currentTarget.value)}
        />
      </label>
      {isAdmin && tenants.length > 0 && (
        <label>
          <span class="unseen">{t("tenant")}</span>
          <select
            value={filters.tenant === null ? "" : String(filters.tenant)}
            onChange={({ currentTarget: { value } }) =>
              onChange({ tenant: value === "" ? null : Number(value), collection: null })
            }
          >
            <option value="">{t("allTenants")}</option>
            {tenants.map(({ id, name }) => (
              <option key={id} value={String(id)}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <StatusFilter
        value={filters.status}
        options={ASSET_PLAYBACK_STATUS.map((one) => [one, t(one)])}
        onChange={(status) => onChange({ status })}
      />
      <label>
        <span class="unseen">{t("sort")}</span>
        <select
          value={(sorts as readonly string[]).includes(filters.sort) ? filters.sort : "newest"}
          onChange={({ currentTarget }) => onChange({ sort: currentTarget.value as Sort })}
        >
          {sorts.map((sort) => (
            <option key={sort} value={sort}>
              {names[sort]}
            </option>
          ))}
        </select>
      </label>
      <div class="toggle">
        {(["grid", "list"] as const).map((one) => (
          <button key={one} type="button" aria-pressed={layout === one} onClick={() => onLayout(one)}>
            {t(one)}
          </button>
        ))}
      </div>
      <details class="more-filters" open={filters.policy !== "" || filters.from !== "" || filters.to !== ""}>
        <summary>{t("moreFilters")}</summary>
        <div class="row">
          <label>
            <span class="unseen">{t("policy")}</span>
            <select
              value={filters.policy}
              onChange={({ currentTarget }) => onChange({ policy: currentTarget.value as Filters["policy"] })}
            >
              <option value="">{t("anyPolicy")}</option>
              {ASSET_PLAYBACK_POLICY.map((policy) => (
                <option key={policy} value={policy}>
                  {t(policy)}
                </option>
              ))}
            </select>
          </label>
          <label class="check">
            {t("from")}
            <input
              type="date"
              value={filters.from}
              max={filters.to || "9999-12-31"}
              onChange={({ currentTarget }) => onChange({ from: currentTarget.value })}
            />
          </label>
          <label class="check">
            {t("to")}
            <input
              type="date"
              value={filters.to}
              min={filters.from}
              max="9999-12-31"
              onChange={({ currentTarget }) => onChange({ to: currentTarget.value })}
            />
          </label>
        </div>
      </details>
    </search>
  );
}
