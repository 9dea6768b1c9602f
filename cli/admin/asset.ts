import type { Asset, SearchResult } from "#build/client/methods.ts";
import type { Result } from "#clients/typescript/types.ts";
import { UserError } from "#lib/base";
import { type Column, line, printJson, printList, printRecord, state } from "../print.ts";
import { amount, duration, relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";

const path = "/api/v1/assets";
const at = (id: string | undefined, rest = "") => `${path}/${encodeURIComponent(id ?? "")}${rest}`;
/** The most ids in one bulk request. */
const MAX_IDS = 1000;

const COLUMNS: Column<Asset>[] = [
  ["ID", (asset) => asset.id],
  ["TENANT", (asset) => asset.tenant_id],
  ["TITLE", (asset) => asset.title],
  ["STATUS", (asset) => state(asset.playback_status)],
  ["POLICY", (asset) => asset.playback_policy],
  ["DURATION", (asset) => duration(asset.duration_seconds)],
  ["STORED", (asset) => amount(asset.storage_bytes)],
  ["ERROR", (asset) => asset.error?.code],
  ["CREATED", (asset) => relative(asset.created_at)],
];

type ListOptions = { tenant?: string; status?: string };

export async function list({ admin, json, options }: CommandContext<ListOptions>): Promise<void> {
  const query = new URLSearchParams();
  if (options.status !== undefined) query.set("playback_status", options.status);
  if (options.tenant !== undefined) query.set("tenant_id", String(await tenantId(admin, options.tenant)));
  printList(await admin.call<Asset[]>("GET", `${path}?${query}`), COLUMNS, json);
}

export async function search({
  admin,
  json,
  args,
  options,
}: CommandContext<{ tenant: string; language?: string; limit: string }>): Promise<void> {
  const query = new URLSearchParams({ q: args.join(" "), limit: options.limit });
  query.set("tenant_id", String(await tenantId(admin, options.tenant)));
  if (options.language !== undefined) query.set("language", options.language);
  const results = await admin.call<SearchResult[]>("GET", `/api/v1/search?${query}`);
  if (json) return printJson(results);
  const rows = results.flatMap(({ asset_id, title, matches }) =>
    matches.map((match) => ({ ...match, asset_id, title })),
  );
  printList(
    rows,
    [
      ["ID", (row) => row.asset_id],
      ["TITLE", (row) => row.title],
      ["IN", (row) => row.kind],
      ["AT", (row) => (row.start_ms === undefined ? "" : duration(row.start_ms / 1000))],
      ["TEXT", (row) => row.text],
    ],
    json,
  );
}

export const show = async ({ admin, json, args }: CommandContext) =>
  print(await admin.call<Asset>("GET", at(args[0])), json);

export async function retry({ admin, json, args }: CommandContext): Promise<void> {
  const { asset } = await admin.call<Result<"retryAsset">>("POST", at(args[0], "/retry"));
  print(asset, json);
}

export async function policy({ admin, json, args }: CommandContext): Promise<void> {
  const [id, playback_policy] = args;
  print(await admin.call<Asset>("PATCH", at(id), { video_asset: { playback_policy } }), json);
}

export async function remove({ admin, json, args, options }: CommandContext<{ yes?: boolean }>): Promise<void> {
  const ids = args.map((arg) => {
    if (!/^[1-9]\d{0,14}$/.test(arg)) throw new UserError(`${arg} is not the id of an asset.`, 2);
    return Number(arg);
  });
  if (!options.yes)
    throw new UserError("Assets are deleted with their media and sources, for good; confirm it with --yes.", 2);
  const result: Result<"changeAssets"> = { applied: [], errors: [] };
  for (let from = 0; from < ids.length; from += MAX_IDS) {
    const body = { ids: ids.slice(from, from + MAX_IDS), action: "delete" };
    const { applied, errors } = await admin.call<Result<"changeAssets">>("POST", at("bulk"), body);
    result.applied.push(...applied);
    result.errors.push(...errors);
  }
  if (json) printJson(result);
  else {
    for (const id of result.applied) line(`Asset ${id} is deleted.`);
    for (const { id, message } of result.errors) line(`Asset ${id}: ${message}`);
  }
  if (result.errors.length > 0) process.exitCode = 1;
}

function print(asset: Asset, json: boolean): void {
  if (json) return printRecord(asset, json);
  const { error, warnings = [] } = asset;
  const inWords = ({ code, message }: { code: string; message: string }) => `${code}: ${message}`;
  printRecord({ ...asset, error: error && inWords(error), warnings: warnings.map(inWords) }, json);
}
