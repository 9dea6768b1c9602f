import { text } from "node:stream/consumers";
import type { SimulcastTarget as Target } from "#build/client/methods.ts";
import { UserError } from "#lib/base";
import type { Admin } from "../connect.ts";
import { type Column, line, printJson, printList, printRecord, state } from "../print.ts";
import { relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { channelId } from "./live.ts";
import { isOn } from "./switch.ts";

type Options = { url?: string; name?: string; enabled?: string; streamKeyStdin?: boolean };

const COLUMNS: Column<Target>[] = [
  ["ID", (target) => target.id],
  ["NAME", (target) => target.name],
  ["URL", (target) => target.url],
  ["ENABLED", (target) => (target.enabled ? "yes" : "no")],
  ["STATUS", (target) => target.status && state(target.status)],
  ["SINCE", (target) => relative(target.status_changed_at)],
  ["DROPPED FRAMES", (target) => target.dropped_frames],
  ["ERROR", (target) => target.error],
];

const pathOf = async (admin: Admin, channel: string | undefined) =>
  `/api/v1/live/channels/${await channelId(admin, channel ?? "")}/targets`;

async function oneOf(admin: Admin, [channel, id = ""]: string[]): Promise<string> {
  if (!/^[1-9]\d{0,14}$/.test(id)) throw new UserError("The target must be a number; list them with live targets.", 2);
  return `${await pathOf(admin, channel)}/${id}`;
}

/** The stream key never is an argument: other users of the machine see those. */
const fieldsOf = async ({ url, name, enabled, streamKeyStdin }: Options) => ({
  url,
  name,
  enabled: isOn("--enabled", enabled),
  stream_key: streamKeyStdin ? (await text(process.stdin)).trim() : undefined,
});

export async function list({ admin, json, args }: CommandContext): Promise<void> {
  printList(await admin.call<Target[]>("GET", await pathOf(admin, args[0])), COLUMNS, json);
}

export async function add({ admin, json, args, options }: CommandContext<Options>): Promise<void> {
  const path = await pathOf(admin, args[0]);
  printRecord(await admin.call<Target>("POST", path, await fieldsOf(options)), json);
}

export async function update({ admin, json, args, options }: CommandContext<Options>): Promise<void> {
  const path = await oneOf(admin, args);
  printRecord(await admin.call<Target>("PATCH", path, await fieldsOf(options)), json);
}

export async function remove({ admin, json, args }: CommandContext): Promise<void> {
  await admin.call("DELETE", await oneOf(admin, args));
  if (json) printJson({ target: Number(args[1]), deleted: true });
  else line(`Target ${args[1]} is deleted.`);
}
