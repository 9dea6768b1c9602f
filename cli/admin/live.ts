import { UserError } from "../../src/lib/errors.ts";
import type { Admin } from "../connect.ts";
import { type Column, line, printJson, printList, printRecord } from "../print.ts";
import { relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";
import { durationMs } from "./time.ts";

type Channel = Record<string, unknown> & { id: number; channel: string; path: string; stream_key?: string };
type New = { tenant: string; channel: string; name?: string; playbackPolicy?: string; publisher?: string };
const path = "/api/v1/live/channels";

const COLUMNS: Column<Channel>[] = [
  ["ID", (channel) => channel.id],
  ["TENANT", (channel) => channel.tenant_id],
  ["PATH", (channel) => channel.path],
  ["NAME", (channel) => channel.name],
  ["POLICY", (channel) => channel.playback_policy],
  ["PUBLISHER", (channel) => channel.publisher],
  ["REVOKED", (channel) => relative(channel.revoked_at)],
];

export async function create({ admin, json, options }: CommandContext<New>): Promise<void> {
  const { tenant, channel, name, playbackPolicy, publisher } = options;
  const tenant_id = await tenantId(admin, tenant);
  const body = { tenant_id, channel, name, playback_policy: playbackPolicy, publisher };
  printKey(await admin.call<Channel>("POST", path, body), json);
}

export async function list({ admin, json, options }: CommandContext): Promise<void> {
  const of = options.tenant === undefined ? "" : `?tenant_id=${await tenantId(admin, options.tenant)}`;
  printList(await admin.call<Channel[]>("GET", `${path}${of}`), COLUMNS, json);
}

export async function revoke({ admin, json, args }: CommandContext): Promise<void> {
  const id = await channelId(admin, args[0] ?? "");
  await admin.call("DELETE", `${path}/${id}`);
  if (json) printJson({ id, revoked: true });
  else line(`Channel ${args[0]} is revoked.`);
}

export async function rotate({ admin, json, args }: CommandContext): Promise<void> {
  const id = await channelId(admin, args[0] ?? "");
  printKey(await admin.call<Channel>("POST", `${path}/${id}/stream_key`), json);
}

export async function token({ admin, json, args, options }: CommandContext<{ expiresIn?: string }>): Promise<void> {
  const id = await channelId(admin, args[0] ?? "");
  const { expiresIn } = options;
  const body = expiresIn === undefined ? {} : { expires_in: durationMs("--expires-in", expiresIn) / 1000 };
  printRecord(await admin.call<Record<string, unknown>>("POST", `${path}/${id}/token`, body), json);
}

function printKey(channel: Channel, json: boolean): void {
  printRecord(channel, json);
  if (!json) line("\nSave the stream key now; it is not shown again.");
}

/** By name or id; of several with the same name, the one that is not revoked. */
async function channelId(admin: Admin, ref: string): Promise<number> {
  const channels = await admin.call<Channel[]>("GET", `${path}?channel=${encodeURIComponent(ref)}`);
  const chosen = channels.find((each) => each.revoked_at === null) ?? channels[0];
  if (chosen) return chosen.id;
  if (/^[1-9]\d{0,14}$/.test(ref)) return Number(ref);
  throw new UserError(`There is no channel ${ref}; list channels with vodbox admin live list.`);
}
