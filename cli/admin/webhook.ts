import type { WebhookDelivery as Delivery, WebhookEndpoint as Endpoint } from "#build/client/methods.ts";
import type { Result } from "#clients/typescript/types.ts";
import { UserError } from "#lib/base";
import { listOf } from "../list-option.ts";
import { type Column, line, printJson, printList, printRecord, state } from "../print.ts";
import { type Progress, showProgress } from "../progress.ts";
import { relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";
import { momentOf } from "./time.ts";

type Batch = Result<"replayDeliveries">;
type Filters = {
  tenant?: string;
  endpoint?: string;
  event?: string;
  status?: string;
  since?: string;
  until?: string;
  failed?: boolean;
};
const path = "/api/v1/webhooks";
const admin = "/api/v1/admin/webhooks";

const ENDPOINTS: Column<Endpoint>[] = [
  ["ID", (each) => each.id],
  ["TENANT", (each) => each.tenant_id],
  ["URL", (each) => each.url],
  ["EVENTS", (each) => each.event_types.join(", ") || "all"],
  ["ACTIVE", (each) => (each.active ? "yes" : `no${each.disabled_reason ? ` (${each.disabled_reason})` : ""}`)],
  ["FAILURES", (each) => each.failure_count],
  ["LAST DELIVERY", (each) => relative(each.last_delivery_at)],
];
const DELIVERIES: Column<Delivery>[] = [
  ["ID", (each) => each.delivery_id],
  ["TENANT", (each) => each.tenant_id],
  ["ENDPOINT", (each) => each.endpoint_id],
  ["EVENT", (each) => each.event],
  ["EVENT ID", (each) => each.event_id],
  ["STATUS", (each) => state(String(each.status))],
  ["ATTEMPTS", (each) => each.attempts],
  ["ANSWER", (each) => each.response_status ?? each.error?.code],
  ["AT", (each) => relative(each.last_attempt_at ?? each.created_at)],
];

type Create = { tenant: string; url: string; events?: string; description?: string };

export async function create({ admin, json, options }: CommandContext<Create>): Promise<void> {
  const endpoint = await admin.call<Result<"createWebhook">>("POST", path, {
    tenant_id: await tenantId(admin, options.tenant),
    url: options.url,
    description: options.description,
    event_types: listOf(options.events ?? ""),
  });
  if (json) return printJson(endpoint);
  printRecord(endpoint, false);
  line("\nSave the secret now; it is not shown again.");
}

export async function list({ admin, json, options }: CommandContext<{ tenant?: string }>): Promise<void> {
  const of = options.tenant === undefined ? "" : `?tenant_id=${await tenantId(admin, options.tenant)}`;
  printList(await admin.call<Endpoint[]>("GET", `${path}${of}`), ENDPOINTS, json);
}

/** The flags as a request body. */
async function filterOf(ask: CommandContext<Filters>): Promise<Record<string, string | number>> {
  const { tenant, endpoint, event, since, until, failed } = ask.options;
  if (failed && ask.options.status) throw new UserError("Use --failed or --status, not both.", 2);
  if (endpoint !== undefined && !/^[1-9]\d{0,14}$/.test(endpoint))
    throw new UserError(`--endpoint ${endpoint} is not an endpoint id.`, 2);
  const filter = {
    tenant_id: tenant === undefined ? undefined : await tenantId(ask.admin, tenant),
    endpoint_id: endpoint === undefined ? undefined : Number(endpoint),
    event,
    status: failed ? "failed" : ask.options.status,
    since: since === undefined ? undefined : momentOf("--since", since),
    until: until === undefined ? undefined : momentOf("--until", until),
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
}

export async function deliveries(ask: CommandContext<Filters & { limit: string }>): Promise<void> {
  const filter = await filterOf(ask);
  const query = new URLSearchParams({ ...(filter as Record<string, string>), limit: ask.options.limit });
  printList(await ask.admin.call<Delivery[]>("GET", `${admin}/deliveries?${query}`), DELIVERIES, ask.json);
}

export async function test({ admin, json, args }: CommandContext): Promise<void> {
  const sent = await admin.call<Delivery>("POST", `${path}/${encodeURIComponent(args[0] ?? "")}/test`);
  if (json) return printJson(sent);
  line(`${sent.delivery_id} (${sent.event}, ${sent.event_id}) is ${sent.status}.`);
}

const IDS_AT_ONCE = 100;

export async function replay(ask: CommandContext<Filters & { dryRun?: boolean }>): Promise<void> {
  const { admin: server, args, options, json } = ask;
  const filter = await filterOf(ask);
  if (args.length === 0 && !filter.status && !filter.since && !filter.until && !filter.event)
    throw new UserError("Specify what to replay: ids, --failed, --status, --event or --since.", 2);
  const groups: (string[] | undefined)[] = args.length === 0 ? [undefined] : chunks(args, IDS_AT_ONCE);
  const run = async (dryRun: boolean, onBatch: (batch: Batch) => void) => {
    for (const ids of groups) {
      for (let after: number | null = 0; after !== null; ) {
        const body: object = { ...filter, ids, dry_run: dryRun, after };
        const batch: Batch = await server.call<Batch>("POST", `${admin}/replay`, body);
        onBatch(batch);
        after = batch.last;
      }
    }
  };
  const sum = { matched: 0, replayed: 0, paused: 0, unknown: [] as string[] };
  const total = { matched: 0 };
  await run(true, (batch) => {
    total.matched += batch.matched;
    if (options.dryRun) add(sum, batch);
  });
  if (!options.dryRun) {
    const progress: Progress | null = total.matched > IDS_AT_ONCE ? showProgress("Replaying") : null;
    await run(false, (batch) => {
      add(sum, batch);
      progress?.update(Math.min(1, sum.matched / Math.max(1, total.matched)));
    });
    progress?.done();
  }
  if (json) printJson({ dry_run: options.dryRun === true, ...sum });
  else {
    const { matched, replayed, paused } = sum;
    const done = options.dryRun
      ? `${counted(matched - paused)} would be resent`
      : `${counted(replayed)} ${replayed === 1 ? "is" : "are"} resent`;
    line(`${done}${paused > 0 ? `; ${paused} are left, since their endpoint is paused` : ""}.`);
  }
  if (sum.unknown.length > 0) throw new UserError(`Unknown ids: ${sum.unknown.join(", ")}.`);
}

const counted = (deliveries: number) => (deliveries === 1 ? "1 delivery" : `${deliveries} deliveries`);

function add(sum: Omit<Batch, "last">, batch: Batch): void {
  sum.matched += batch.matched;
  sum.replayed += batch.replayed;
  sum.paused += batch.paused;
  sum.unknown.push(...batch.unknown.filter((id) => !sum.unknown.includes(id)));
}

const chunks = <T>(all: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));
