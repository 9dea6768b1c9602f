import type { LiveChannel as Channel } from "#build/client/methods.ts";
import type { Result } from "#clients/typescript/types.ts";
import { UserError } from "#lib/base";
import type { Admin } from "../connect.ts";
import { listOf } from "../list-option.ts";
import { type Column, line, printJson, printList, printRecord, state } from "../print.ts";
import { relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { isOn } from "./switch.ts";
import { tenantId } from "./tenant.ts";
import { durationMs } from "./time.ts";

type Fields = {
  name?: string;
  playbackPolicy?: string;
  publisher?: string;
  record?: string;
  dvrSeconds?: string;
  lowLatency?: string;
  takeover?: string;
  encodingProfile?: string;
  captions?: string;
  captionsLive?: string;
  startsAt?: string;
  enabled?: string;
  reconnectSeconds?: string;
  maxDurationSeconds?: string;
};
type New = Fields & { tenant: string; channel: string };
const path = "/api/v1/live/channels";

const COLUMNS: Column<Channel>[] = [
  ["ID", (channel) => channel.id],
  ["TENANT", (channel) => channel.tenant_id],
  ["PATH", (channel) => channel.path],
  ["NAME", (channel) => channel.name],
  ["STATUS", (channel) => state(channel.status)],
  ["VIEWERS", (channel) => channel.viewers],
  ["POLICY", (channel) => channel.playback_policy],
  ["PUBLISHER", (channel) => channel.publisher],
  ["REVOKED", (channel) => relative(channel.revoked_at)],
];

/** An empty publisher means any user, an empty profile none, empty captions none, an empty start none, and an empty duration any. */
const fields = ({ name, playbackPolicy, publisher, encodingProfile, captions, startsAt, ...rest }: Fields) => ({
  name,
  playback_policy: playbackPolicy,
  publisher: publisher === "" ? null : publisher,
  record: isOn("--record", rest.record),
  dvr_seconds: secondsOf("--dvr-seconds", rest.dvrSeconds),
  low_latency: isOn("--low-latency", rest.lowLatency),
  takeover: isOn("--takeover", rest.takeover),
  encoding_profile: encodingProfile === "" ? null : encodingProfile,
  captions: captions === undefined ? undefined : listOf(captions),
  captions_live: rest.captionsLive === undefined ? undefined : listOf(rest.captionsLive),
  starts_at: startsAt === "" ? null : startsAt,
  enabled: isOn("--enabled", rest.enabled),
  reconnect_seconds: secondsOf("--reconnect-seconds", rest.reconnectSeconds),
  max_duration_seconds:
    rest.maxDurationSeconds === "" ? null : secondsOf("--max-duration-seconds", rest.maxDurationSeconds),
});

function secondsOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,6}$/.test(text)) throw new UserError(`${flag} must be a whole number of seconds.`, 2);
  return Number(text);
}

export async function create({ admin, json, options }: CommandContext<New>): Promise<void> {
  const { tenant, channel, ...rest } = options;
  const tenant_id = await tenantId(admin, tenant);
  printKey(await admin.call<Channel>("POST", path, { tenant_id, channel, ...fields(rest) }), json);
}

export async function show({ admin, json, args }: CommandContext): Promise<void> {
  const id = await channelId(admin, args[0] ?? "");
  printChannel(await admin.call<Channel>("GET", `${path}/${id}`), json);
}

export async function update({ admin, json, args, options }: CommandContext<Fields>): Promise<void> {
  const id = await channelId(admin, args[0] ?? "");
  printChannel(await admin.call<Channel>("PATCH", `${path}/${id}`, fields(options)), json);
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

export async function end({ admin, json, args }: CommandContext): Promise<void> {
  const id = await channelId(admin, args[0] ?? "");
  printChannel(await admin.call<Channel>("POST", `${path}/${id}/end`), json);
}

export async function token({ admin, json, args, options }: CommandContext<{ expiresIn?: string }>): Promise<void> {
  const id = await channelId(admin, args[0] ?? "");
  const { expiresIn } = options;
  const body = expiresIn === undefined ? {} : { expires_in: durationMs("--expires-in", expiresIn) / 1000 };
  printRecord(await admin.call<Result<"createChannelToken">>("POST", `${path}/${id}/token`, body), json);
}

/** Advice follows the fields, because it is sentences. */
function printChannel(channel: Channel, json: boolean): void {
  if (json) return printJson(channel);
  const { ingest = {}, ...fields } = channel;
  const urls = Object.entries(ingest).filter(([, url]) => url !== null);
  printRecord({ ...fields, ...Object.fromEntries(urls), health: channel.health && healthText(channel.health) }, json);
  const warnings = channel.health?.warnings?.map(({ message }) => message) ?? [];
  for (const text of [...(channel.health?.advice ?? []), ...warnings]) line(`\n${text}`);
}

function healthText({
  bitrate,
  frame_rate,
  dropped_frames,
  keyframe_seconds,
  speed,
}: NonNullable<Channel["health"]>): string {
  const parts = [
    `${(bitrate / 1e6).toFixed(2)} Mbit/s`,
    frame_rate !== null && `${frame_rate} frames/s`,
    dropped_frames && `${dropped_frames} frames missing`,
    keyframe_seconds !== null && `keyframes every ${keyframe_seconds} s`,
    speed !== null && `${Math.round(speed * 100)} % of real time`,
  ];
  return parts.filter(Boolean).join(", ");
}

function printKey(channel: Channel, json: boolean): void {
  printChannel(channel, json);
  if (!json) line("\nSave the stream key now; it is not shown again.");
}

/** By name or id; of several with the same name, the one that is not revoked. */
export async function channelId(admin: Admin, ref: string): Promise<number> {
  const channels = await admin.call<Channel[]>("GET", `${path}?channel=${encodeURIComponent(ref)}`);
  const chosen = channels.find((each) => each.revoked_at === null) ?? channels[0];
  if (chosen) return chosen.id;
  if (/^[1-9]\d{0,14}$/.test(ref)) return Number(ref);
  throw new UserError(`There is no channel ${ref}; list channels with vodbox admin live list.`);
}
