import type { Item } from "#clients/typescript/types.ts";
import { UserError } from "#lib/base";
import { type Column, printList } from "../print.ts";
import { relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";
import { momentOf } from "./time.ts";

const COLUMNS: Column<Item<"listAuditEntries">>[] = [
  ["WHEN", (entry) => relative(entry.created_at)],
  ["WHO", (entry) => [entry.actor_name ?? entry.actor, entry.operator].filter((part) => part !== null).join(" ")],
  ["FROM", (entry) => entry.address],
  ["TENANT", (entry) => entry.tenant_id],
  ["DID", (entry) => `${entry.method} ${entry.route}`],
  ["TO", (entry) => entry.target_id],
  ["FIELDS", (entry) => entry.fields.join(", ")],
];

type Options = { tenant?: string; since?: string; actor?: string; action?: string; limit: string };

export async function audit({ admin, json, options }: CommandContext<Options>): Promise<void> {
  const { tenant, since, actor, action, limit } = options;
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > 500)
    throw new UserError("--limit must be a whole number from 1 to 500.", 2);
  const query = new URLSearchParams({
    limit,
    ...(tenant !== undefined && { tenant_id: String(await tenantId(admin, tenant)) }),
    ...(actor !== undefined && { actor }),
    ...(action !== undefined && { action }),
    ...(since !== undefined && { since: momentOf("--since", since) }),
  });
  printList(await admin.call<Item<"listAuditEntries">[]>("GET", `/api/v1/admin/audit?${query}`), COLUMNS, json);
}
