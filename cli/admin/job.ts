import { type Column, printList, printRecord } from "../print.ts";
import type { Ask } from "./ask.ts";
import { tenantId } from "./tenant.ts";

type Job = Record<string, unknown> & { id: number; error: { code: string; message: string } | null };
type Options = { state?: string; tenant?: string };
const path = "/api/v1/transcoding_jobs";
const at = (id: string | undefined, verb = "") => `${path}/${encodeURIComponent(id ?? "")}${verb}`;

const COLUMNS: Column<Job>[] = [
  ["ID", (job) => job.id],
  ["TENANT", (job) => job.tenant_id],
  ["ASSET", (job) => job.asset_id],
  ["STATUS", (job) => job.status],
  ["ATTEMPT", (job) => `${job.attempt}/${job.max_attempts}`],
  ["PROGRESS", (job) => `${job.progress} %`],
  ["STAGE", (job) => job.stage],
  ["WORKER", (job) => job.worker_id],
  ["ERROR", (job) => job.error?.code],
  ["CREATED", (job) => job.created_at],
];

export async function list({ admin, json, options }: Ask<Options>): Promise<void> {
  const query = new URLSearchParams();
  if (options.state !== undefined) query.set("status", options.state);
  if (options.tenant !== undefined) query.set("tenant_id", String(await tenantId(admin, options.tenant)));
  printList(await admin.call<Job[]>("GET", `${path}?${query}`), COLUMNS, json);
}

export const show = async ({ admin, json, args }: Ask) => print(await admin.call<Job>("GET", at(args[0])), json);
export const retry = async ({ admin, json, args }: Ask) =>
  print(await admin.call<Job>("POST", at(args[0], "/retry")), json);
export const cancel = async ({ admin, json, args }: Ask) =>
  print(await admin.call<Job>("POST", at(args[0], "/cancel")), json);

function print(job: Job, json: boolean): void {
  const { error } = job;
  printRecord(json ? job : { ...job, error: error && `${error.code}: ${error.message}` }, json);
}
