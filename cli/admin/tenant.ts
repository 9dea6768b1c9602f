import { readFile } from "node:fs/promises";
import type { Tenant, TenantDeletion } from "#build/client/methods.ts";
import { UserError } from "#lib/base";
import type { Admin } from "../connect.ts";
import { type Column, line, printList, printRecord, state } from "../print.ts";
import type { CommandContext } from "./command-context.ts";
import { isOn } from "./switch.ts";

type Options = {
  name?: string;
  slug?: string;
  plan?: string;
  playbackPolicy?: string;
  allowedOrigins?: string;
  encodingProfile?: string;
  earlyPlayback?: string;
  language?: string;
  deleteSourcesAfterDays?: string;
  deleteAnalyticsAfterDays?: string;
  accentColor?: string;
  showTitle?: string;
  allowDownload?: string;
  remove?: boolean;
  undo?: boolean;
  confirm?: string;
};
const path = "/api/v1/admin/tenants";
const at = (ref: string | undefined) => `${path}/${encodeURIComponent(ref ?? "")}`;

const COLUMNS: Column<Tenant>[] = [
  ["ID", (tenant) => tenant.id],
  ["SLUG", (tenant) => tenant.slug],
  ["NAME", (tenant) => tenant.name],
  ["PLAN", (tenant) => tenant.plan_name],
  ["STATUS", (tenant) => state(tenant.status)],
  ["PLAYBACK", (tenant) => tenant.default_playback_policy],
];

/** `never` removes a limit. */
function daysOf(option: string, text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (text === "never") return null;
  if (!/^\d{1,6}$/.test(text)) throw new UserError(`${option} must be a number of days, or never.`, 2);
  return Number(text);
}

/** `default` removes the tenant's own choice. */
const earlyPlaybackOf = (text: string | undefined): boolean | null | undefined =>
  text === "default" ? null : isOn("--early-playback", text, ["default"]);

function playerOf({ accentColor, showTitle, allowDownload }: Options) {
  const player = {
    accent_color: accentColor === "default" ? null : accentColor,
    show_title: isOn("--show-title", showTitle),
    allow_download: isOn("--allow-download", allowDownload),
  };
  return Object.values(player).some((value) => value !== undefined) ? player : undefined;
}

const fields = ({ name, slug, plan, playbackPolicy, allowedOrigins, encodingProfile, ...rest }: Options) => ({
  name,
  slug,
  plan_name: plan,
  default_playback_policy: playbackPolicy,
  // An empty text means none: no site may embed.
  allowed_origins: allowedOrigins?.split(/[\s,]+/).filter(Boolean),
  default_encoding_profile: encodingProfile === "default" ? null : encodingProfile,
  early_playback: earlyPlaybackOf(rest.earlyPlayback),
  language: rest.language === "none" ? null : rest.language,
  delete_sources_after_days: daysOf("--delete-sources-after-days", rest.deleteSourcesAfterDays),
  delete_analytics_after_days: daysOf("--delete-analytics-after-days", rest.deleteAnalyticsAfterDays),
  player: playerOf(rest),
});

/** The id of a tenant that is given by id or slug. */
export const tenantId = async (admin: Admin, ref: string) => (await admin.call<Tenant>("GET", at(ref))).id;

export const create = async ({ admin, json, options }: CommandContext<Options>) =>
  printRecord(await admin.call<Tenant>("POST", path, fields(options)), json);
export const list = async ({ admin, json }: CommandContext) =>
  printList(await admin.call<Tenant[]>("GET", "/api/v1/tenants"), COLUMNS, json);
export const show = async ({ admin, json, args }: CommandContext) =>
  printRecord(await admin.call<Tenant>("GET", at(args[0])), json);
export const update = async ({ admin, json, args, options }: CommandContext<Options>) =>
  printRecord(await admin.call<Tenant>("PATCH", at(args[0]), fields(options)), json);
export const suspend = async ({ admin, json, args, options }: CommandContext<Options>) =>
  printRecord(await admin.call<Tenant>("PATCH", at(args[0]), { status: options.undo ? "active" : "suspended" }), json);

export async function logo({ admin, json, args: [ref, file], options }: CommandContext<Options>): Promise<void> {
  if ((file === undefined) !== (options.remove === true))
    throw new UserError("Name a PNG file, or remove the logo with --remove.", 2);
  const path = `/api/v1/tenants/${await tenantId(admin, ref ?? "")}/logo`;
  if (file === undefined) return printRecord(await admin.call<Tenant>("DELETE", path), json);
  const image = await readFile(file).catch((error: Error) => {
    throw new UserError(`The file ${file} cannot be read: ${error.message}.`);
  });
  printRecord(await admin.call<Tenant>("PUT", path, image), json);
}

export async function remove({ admin, json, args, options }: CommandContext<Options>): Promise<void> {
  const query = new URLSearchParams({ confirm: options.confirm ?? "" });
  const deletion = await admin.call<TenantDeletion>("DELETE", `${at(args[0])}?${query}`);
  if (json) return printRecord(deletion, true);
  line(
    `The tenant ${deletion.slug} is being deleted in the background. It is listed as deleting until that is complete.`,
  );
}
