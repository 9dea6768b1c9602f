import type { UsageSummary } from "#build/client/methods.ts";
import { type Column, printList } from "../print.ts";
import { amount } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";

type Options = { tenant?: string; month?: string };

const COLUMNS: Column<UsageSummary>[] = [
  ["ID", (row) => row.tenant_id],
  ["TENANT", (row) => row.tenant],
  ["PLAN", (row) => row.plan_name],
  ["MONTH", (row) => row.period_start.slice(0, 7)],
  ["STORED NOW", (row) => amount(row.storage_bytes)],
  ["SENT", (row) => amount(row.egress_bytes)],
  ["MINUTES", (row) => row.transcoding_minutes],
  ["LIVE MINUTES", (row) => row.live_minutes],
  ["ESTIMATE", (row) => money(row.estimate)],
];

function money({ currency, total_minor }: UsageSummary["estimate"]): string {
  const format = new Intl.NumberFormat("en", { style: "currency", currency, currencyDisplay: "code" });
  return format.format(total_minor / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
}

export async function usage({ admin, json, options }: CommandContext<Options>): Promise<void> {
  const query = new URLSearchParams();
  if (options.month !== undefined) query.set("month", options.month);
  if (options.tenant !== undefined) query.set("tenant_id", String(await tenantId(admin, options.tenant)));
  printList(await admin.call<UsageSummary[]>("GET", `/api/v1/usage/summary?${query}`), COLUMNS, json);
}
