import type { Admin } from "../connect.ts";
import { type Column, printList, printRecord } from "../print.ts";
import type { CommandContext } from "./command-context.ts";

type Tenant = Record<string, unknown> & { id: number; name: string; slug: string; status: string; plan_name: string };
type Options = {
  name?: string;
  slug?: string;
  plan?: string;
  playbackPolicy?: string;
  allowedOrigins?: string;
  undo?: boolean;
};
const path = "/api/v1/admin/tenants";
const at = (ref: string | undefined) => `${path}/${encodeURIComponent(ref ?? "")}`;

const COLUMNS: Column<Tenant>[] = [
  ["ID", (tenant) => tenant.id],
  ["SLUG", (tenant) => tenant.slug],
  ["NAME", (tenant) => tenant.name],
  ["PLAN", (tenant) => tenant.plan_name],
  ["STATUS", (tenant) => tenant.status],
  ["PLAYBACK", (tenant) => tenant.default_playback_policy],
];

const fields = ({ name, slug, plan, playbackPolicy, allowedOrigins }: Options) => ({
  name,
  slug,
  plan_name: plan,
  default_playback_policy: playbackPolicy,
  // An empty text is none: nobody may.
  allowed_origins: allowedOrigins?.split(/[\s,]+/).filter(Boolean),
});

/** The id of a tenant that is named by id or slug. */
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
