import type { Upload } from "#build/client/methods.ts";
import { type Column, printList, state } from "../print.ts";
import { amount, relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";

const COLUMNS: Column<Upload>[] = [
  ["ID", (upload) => upload.id],
  ["TENANT", (upload) => upload.tenant_id],
  ["ASSET", (upload) => upload.asset_id],
  ["FILENAME", (upload) => upload.filename],
  ["STATUS", (upload) => state(upload.status)],
  ["EXPECTED", (upload) => amount(upload.bytes_expected)],
  ["RECEIVED", ({ bytes_received: bytes }) => (bytes === null ? null : amount(bytes))],
  ["CREATED", (upload) => relative(upload.created_at)],
  ["EXPIRES", (upload) => relative(upload.expires_at)],
];

type Options = { tenant?: string; status?: string };

export async function list({ admin, json, options }: CommandContext<Options>): Promise<void> {
  const query = new URLSearchParams();
  if (options.status !== undefined) query.set("status", options.status);
  if (options.tenant !== undefined) query.set("tenant_id", String(await tenantId(admin, options.tenant)));
  printList(await admin.call<Upload[]>("GET", `/api/v1/uploads?${query}`), COLUMNS, json);
}
