import type { TestApp } from "./app.ts";
import type { Answer } from "./client.ts";
import { callback, next, putArtifacts } from "./flow.ts";

type Caller = Pick<TestApp, "call" | "worker">;

/** One claim of a worker that takes tasks. */
export const nextTask = (app: Caller, key?: string, fields: Record<string, unknown> = {}): Promise<Answer> =>
  next(app, key, { worker_id: "w1", capabilities: { tasks: 1 }, ...fields });

/** The result of a `plan` task: 100 seconds of 30 frames, with audio. */
export const planned = (fields: Record<string, unknown> = {}) => ({
  plan: { renditions: ["360p", "720p"] },
  duration_seconds: 100,
  frame_rate: { num: 30, den: 1 },
  segment_seconds: 4,
  has_audio: true,
  uncuttable: null,
  ...fields,
});

const init = { timescale: 15_360, codec: "avc1.64001e", width: 640, height: 360, delay: 1024, sha256: "a".repeat(64) };

/** What a `chunk` or `audio` task of a contract writes; the last chunk has `last` segments, audio has `all`. */
export function written({ task }: any, { last = 5, all = 25 } = {}) {
  const first = task.chunk?.first_segment ?? 0;
  const count = task.chunk ? (task.chunk.segments ?? last) : all;
  const names = task.kind === "audio" ? ["audio"] : task.plan.renditions;
  return names.map((name: string) => ({
    name,
    init,
    first,
    segments: Array.from({ length: count }, (_, index) => [1000, (first + index) * 61_440, 61_440, 100, 200]),
  }));
}

const MEDIA = { duration_seconds: 100, width: 1280, height: 720, frame_rate: 30, renditions: [] };

/** The body with which a worker completes the task of a contract, after writing its files. */
export async function resultOf(app: Caller, contract: any, plan: Record<string, unknown> = {}): Promise<unknown> {
  const { kind } = contract.task;
  if (kind === "plan") return { plan: planned(plan) };
  if (kind === "chunk" || kind === "audio") return { written: written(contract) };
  return { ...(await putArtifacts(app, contract)), media: MEDIA };
}

/** Runs the task of a contract to its end. */
export async function finish(app: Caller, contract: any, plan: Record<string, unknown> = {}) {
  const done = await callback(app, contract, "complete", await resultOf(app, contract, plan));
  if (done.status !== 200) throw new Error(done.text);
  return done.body;
}

/** Claims the next task and runs it. Its contract; null when there is none. */
export async function runNext(app: Caller, plan: Record<string, unknown> = {}): Promise<any> {
  const { status, body } = await nextTask(app);
  if (status === 204) return null;
  await finish(app, body, plan);
  return body;
}

/** Runs all tasks that are queued, and returns their kinds in order. */
export async function runAll(app: Caller, plan: Record<string, unknown> = {}): Promise<string[]> {
  const kinds: string[] = [];
  for (let contract = await runNext(app, plan); contract; contract = await runNext(app, plan))
    kinds.push(contract.task.kind);
  return kinds;
}
