import type { TranscodingJob as Job } from "#build/client/methods.ts";
import { sleep } from "#lib/base";
import { type Column, printList, printRecord, state } from "../print.ts";
import { showProgress } from "../progress.ts";
import { relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";

type Options = { state?: string; tenant?: string };
const FOLLOW_MS = 1000;
const isUnderWay = ({ status }: Job) => status === "queued" || status === "running";
const path = "/api/v1/transcoding_jobs";
const at = (id: string | undefined, verb = "") => `${path}/${encodeURIComponent(id ?? "")}${verb}`;

const COLUMNS: Column<Job>[] = [
  ["ID", (job) => job.id],
  ["TENANT", (job) => job.tenant_id],
  ["ASSET", (job) => job.asset_id],
  ["STATUS", (job) => state(job.status)],
  ["ATTEMPT", (job) => `${job.attempt}/${job.max_attempts}`],
  ["PROGRESS", (job) => `${job.progress} %`],
  ["STAGE", (job) => job.stage],
  ["WORKER", (job) => job.worker_id],
  ["ERROR", (job) => job.error?.code],
  ["CREATED", (job) => relative(job.created_at)],
];

export async function list({ admin, json, options }: CommandContext<Options>): Promise<void> {
  const query = new URLSearchParams();
  if (options.state !== undefined) query.set("status", options.state);
  if (options.tenant !== undefined) query.set("tenant_id", String(await tenantId(admin, options.tenant)));
  printList(await admin.call<Job[]>("GET", `${path}?${query}`), COLUMNS, json);
}

export async function show({ admin, json, args, options }: CommandContext<{ follow?: boolean }>): Promise<void> {
  const read = () => admin.call<Job>("GET", at(args[0]));
  let job = await read();
  if (options.follow && isUnderWay(job)) {
    const progress = showProgress(`job ${job.id}`);
    while (isUnderWay(job)) {
      progress.update(job.progress / 100, `${job.stage ?? job.status}${job.worker_id ? ` by ${job.worker_id}` : ""}`);
      await sleep(FOLLOW_MS);
      job = await read();
    }
    progress.done();
  }
  const { log_tail, ...rest } = job;
  print(json ? job : rest, json);
  if (!json && log_tail) process.stdout.write(`\n${log_tail}\n`);
  if (options.follow && job.status !== "completed") process.exitCode = 1;
}

export const prioritize = async ({ admin, json, args, options }: CommandContext<{ priority: string }>) =>
  print(await admin.call<Job>("PATCH", at(args[0]), { priority: Number(options.priority) }), json);

export const retry = async ({ admin, json, args }: CommandContext) =>
  print(await admin.call<Job>("POST", at(args[0], "/retry")), json);
export const cancel = async ({ admin, json, args }: CommandContext) =>
  print(await admin.call<Job>("POST", at(args[0], "/cancel")), json);

function print(job: Record<string, unknown> & Pick<Job, "error" | "asset">, json: boolean): void {
  const { error, asset } = job;
  const texts = {
    ...(asset && { asset: `${asset.title} (${asset.external_id})` }),
    error: error && `${error.code}: ${error.message}`,
  };
  printRecord(json ? job : { ...job, ...texts }, json);
}
