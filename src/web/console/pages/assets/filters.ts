import { ASSET_PLAYBACK_POLICY, ASSET_PLAYBACK_STATUS, LIST_ASSETS_SORT } from "#build/client/enums.ts";
import type { Params } from "#clients/typescript/types.ts";
import type { Asset } from "#web/console/types.ts";

export type Sort = (typeof LIST_ASSETS_SORT)[number];

/** What the list shows, as in the page's address. Empty texts and null: no restriction. */
export type Filters = {
  q: string;
  status: Asset["playback_status"] | "";
  policy: Asset["playback_policy"] | "";
  sort: Sort;
  collection: number | null;
  tenant: number | null;
  /** Days, `2026-11-23`, in the viewer's zone. */
  from: string;
  to: string;
};

const one = <T extends string>(all: readonly T[], value: string | undefined): T | "" =>
  all.find((each) => each === value) ?? "";
const id = (value: string | undefined) => (value !== undefined && /^[1-9]\d{0,14}$/.test(value) ? Number(value) : null);
const day = (value: string | undefined) =>
  value !== undefined && /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value)) ? value : "";

export const filtersOf = (query: Record<string, string>): Filters => ({
  q: (query.q ?? "").slice(0, 200),
  status: one(ASSET_PLAYBACK_STATUS, query.status),
  policy: one(ASSET_PLAYBACK_POLICY, query.policy),
  sort: one(LIST_ASSETS_SORT, query.sort) || "newest",
  collection: id(query.collection),
  tenant: id(query.tenant),
  from: day(query.from),
  to: day(query.to),
});

/** The query of the address, with its `?`; empty when nothing is restricted. */
export function addressOf(filters: Filters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters))
    if (value !== "" && value !== null && !(name === "sort" && value === "newest")) query.set(name, String(value));
  const text = query.toString();
  return text && `?${text}`;
}

/** Searches, and lists of all tenants, are in the order of creation. */
export const isSortable = ({ q, tenant }: Filters, isAdmin: boolean) =>
  q.trim() === "" && (!isAdmin || tenant !== null);

const startOf = (text: string, days = 0) => {
  const [year = 0, month = 1, date = 1] = text.split("-").map(Number);
  return new Date(year, month - 1, date + days).getTime();
};

/** The parameters of `listAssets`. */
export function paramsOf(filters: Filters, isAdmin: boolean): Params<"listAssets"> {
  const { q, status, policy, sort, collection, tenant, from, to } = filters;
  const possible = isSortable(filters, isAdmin) || sort === "oldest" ? sort : "newest";
  return {
    ...(q.trim() && { q: q.trim() }),
    ...(status && { playback_status: status }),
    ...(policy && { playback_policy: policy }),
    ...(possible !== "newest" && { sort: possible }),
    ...(collection !== null && { collection_id: collection }),
    ...(isAdmin && tenant !== null && { tenant_id: tenant }),
    ...(from && { created_from: new Date(startOf(from)).toISOString() }),
    // To the end of the day.
    ...(to && { created_to: new Date(startOf(to, 1) - 1).toISOString() }),
  };
}
