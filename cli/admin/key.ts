import type { ApiKey } from "#build/client/methods.ts";
import type { Result } from "#clients/typescript/types.ts";
import { listOf } from "../list-option.ts";
import { type Column, line, printJson, printList, printRecord } from "../print.ts";
import { relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";
import { durationMs } from "./time.ts";

type Options = { tenant: string; name: string; scopes: string; expiresIn?: string };
const path = "/api/v1/api_keys";

const COLUMNS: Column<ApiKey>[] = [
  ["ID", (key) => key.id],
  ["NAME", (key) => key.name],
  ["SCOPES", (key) => key.scopes.join(", ")],
  ["ENDS IN", (key) => key.last_four],
  ["EXPIRES", (key) => relative(key.expires_at)],
  ["LAST USED", (key) => relative(key.last_used_at)],
  ["FROM", (key) => key.last_used_address],
  ["REVOKED", (key) => relative(key.revoked_at)],
];

export async function issue({ admin, json, options }: CommandContext<Options>): Promise<void> {
  const scopes = listOf(options.scopes);
  const expiresAt =
    options.expiresIn === undefined
      ? null
      : new Date(Date.now() + durationMs("--expires-in", options.expiresIn)).toISOString();
  const body = { tenant_id: await tenantId(admin, options.tenant), name: options.name, scopes, expires_at: expiresAt };
  const key = await admin.call<Result<"createApiKey">>("POST", path, body);
  if (json) return printJson(key);
  printRecord(key, false);
  line("\nSave the token now; it is not shown again.");
}

export async function list({ admin, json, options }: CommandContext<Options>): Promise<void> {
  printList(
    await admin.call<ApiKey[]>("GET", `${path}?tenant_id=${await tenantId(admin, options.tenant)}`),
    COLUMNS,
    json,
  );
}

export async function rotate({ admin, json, args, options }: CommandContext<{ graceHours: string }>): Promise<void> {
  const body = { grace_hours: Number(options.graceHours) };
  const key = await admin.call<Result<"rotateApiKey">>(
    "POST",
    `${path}/${encodeURIComponent(args[0] ?? "")}/rotate`,
    body,
  );
  if (json) return printJson(key);
  printRecord(key, false);
  line(`\nSave the token now; it is not shown again. Key ${args[0]} ${endsIn(body.grace_hours)}.`);
}

const endsIn = (hours: number) => (hours === 0 ? "is revoked" : `still works for ${hours} h`);

export async function revoke({ admin, json, args }: CommandContext): Promise<void> {
  await admin.call("DELETE", `${path}/${encodeURIComponent(args[0] ?? "")}`);
  if (json) printJson({ id: Number(args[0]), revoked: true });
  else line(`Key ${args[0]} is revoked.`);
}
