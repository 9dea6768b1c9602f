import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Sqlite from "libsql";
import { expect } from "vitest";
import { descendantsOf, type ProcessId, until } from "../descendants.ts";
import { type UploadFields, uploaded } from "../flow.ts";
import { emptyFolder } from "../folder.ts";
import { type RunningServer, type RunOptions, type Started, startServer, tenantKey, vodbox } from "../process.ts";

export type Uploaded = Awaited<ReturnType<typeof uploaded>> & { key: string };

/** A tenant, its key, and one upload of the file `path`, whose job is queued. */
export async function uploadClip(
  server: RunningServer,
  path: string,
  slug = "t",
  fields: UploadFields = {},
): Promise<Uploaded> {
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug });
  const issued = await server
    .as({ admin })
    .createApiKey({ tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write", "playback:read"] });
  const key = issued.body.token;
  return { ...(await uploaded(server, key, { bytes: readFileSync(path), ...fields })), key };
}

/** A server with one worker, and the file `path` as a public asset with early playback, which is ready. */
export async function playingEarly(path: string) {
  const dataDir = emptyFolder();
  const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60" };
  const server = await startServer(dataDir, { env, args: ["--workers", "1"] });
  const key = await tenantKey(server);
  const fields = { early_playback: true, playback_policy: "public" };
  const { asset, job } = await uploaded(server, key, { bytes: readFileSync(path), ...fields });
  const state = async () => (await server.as(key).getAsset(asset.id)).body;
  await until("the asset is ready", async () => (await state()).playback_status === "ready", 120_000);
  const { body: playback } = await server.as(key).getPlayback(asset.id);
  return { dataDir, server, key, asset, job, state, playback };
}

export const startWorker = (server: RunningServer, scratch: string, options: RunOptions = {}): Started =>
  vodbox(["worker", "--server", server.base, "--scratch", scratch], {
    ...options,
    env: { VODBOX_WORKER_TOKEN: server.worker, ...options.env },
  });

/** A repeated `complete` returns the job's current state. */
export async function jobNow(server: RunningServer, { upload, key }: Uploaded) {
  const { body } = await server.as(key).completeUpload(upload.id, { bytes_received: upload.bytes_received });
  return body.transcoding_job;
}

/** Resolves during an encode under `pid` that has been reported to the server; with all its child processes. */
export function untilEncoding(server: RunningServer, made: Uploaded, pid: number): Promise<ProcessId[]> {
  return until("an encode under way", async () => {
    const below = descendantsOf(pid);
    if (!below.some((one) => one.command.includes("filter_complex"))) return null;
    const { stage, progress } = await jobNow(server, made);
    return stage === "encoding" && progress > 5 ? below : null;
  });
}

/** The database that a stopped server left. */
export function rowsOf(dataDir: string) {
  const database = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
  try {
    const all = (sql: string) => database.prepare(sql).all([]) as Record<string, any>[];
    return {
      jobs: all("SELECT * FROM transcoding_jobs ORDER BY id"),
      attempts: all("SELECT * FROM transcoding_attempts ORDER BY id"),
      taskLeases: all("SELECT * FROM task_leases ORDER BY id"),
      assets: all("SELECT * FROM assets ORDER BY id"),
      events: all("SELECT * FROM events ORDER BY id").map(({ type, data }) => ({ type, data: JSON.parse(data) })),
    };
  } finally {
    database.close();
  }
}

export type TaskRow = {
  id: number;
  kind: string;
  status: string;
  failures: number;
  first_frame: number | null;
  first_segment: number | null;
  /** Null: to the end of the source. */
  segments: number | null;
  /** JSON; null: all. */
  renditions: string | null;
  worker_id: string | null;
  finished_at: number;
};

/** The tasks of all jobs, while a server runs. */
export function tasksOf(dataDir: string): TaskRow[] {
  const database = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
  try {
    return database.prepare("SELECT * FROM transcoding_tasks ORDER BY id").all([]) as TaskRow[];
  } finally {
    database.close();
  }
}

/** Whether a task is, or was last, one of this worker. */
export const isTaskOf = ({ child }: Started, { worker_id }: TaskRow) => String(worker_id).endsWith(`-${child.pid}`);

/** Resolves when this many workers wait for jobs: one that starts slowly would find everything encoded. */
export const untilWaiting = (server: RunningServer, workers: number) =>
  until("all workers wait for a job", async () => {
    const { body } = await server.as({ admin: server.admin }).listWorkers();
    return body.length === workers;
  });

/** A segment that is encoded on request, as a player asks for it: again after the time that the server states. Its size. */
export async function requested(url: string): Promise<number> {
  for (let tries = 1; tries <= 60; tries++) {
    const response = await fetch(url);
    const { length } = new Uint8Array(await response.arrayBuffer());
    if (response.status === 200) return length;
    expect(response.status).toBe(503);
    expect(response.headers.get("cache-control")).toBe("no-store");
    await sleep(Number(response.headers.get("retry-after")) * 1000);
  }
  throw new Error(`${url} was never encoded`);
}
