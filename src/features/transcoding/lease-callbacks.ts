import * as v from "valibot";
import type { App } from "#app.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { type Route, route } from "#platform/http/route.ts";
import { HeartbeatAnswer, SignedArtifacts } from "#protocol/contract.ts";
import { Failure, Heartbeat, SignArtifacts } from "#protocol/worker.ts";
import { STALE } from "./lease.ts";

/** What a worker does with what it has leased, whatever that is. Each throws 404, and 409 without a valid lease. */
export type Held = {
  /** Extends the lease, with what the worker reports; the answer to the heartbeat. */
  renew(report: v.InferOutput<typeof Heartbeat>): Promise<unknown>;
  fail(failure: v.InferOutput<typeof Failure>): Promise<unknown>;
  /** Returns it without counting an attempt. */
  release(): Promise<unknown>;
  sign(wanted: v.InferOutput<typeof SignArtifacts>): Promise<unknown>;
};
type Called<Params> = { app: App; params: Params; headers: Headers };
type Summaries = Record<"heartbeat" | "fail" | "release" | "artifacts", string>;

export const LeaseParams = v.object({ id: RecordIdInPath });
/** What all routes of callbacks have in common. */
export const callback = {
  method: "POST",
  credential: "worker",
  lease: true,
  tag: "Transcoding jobs",
  params: LeaseParams,
} as const;

/**
 * The callbacks of a lease but for `complete`, whose body depends on what is leased. `path` is before the name of each, and
 * `name` a part of their operation ids; `result` is what `fail` and `release` answer.
 */
export function leaseCallbacks<Params>({
  path,
  name,
  summaries,
  result,
  held,
  answer = HeartbeatAnswer,
  errors = STALE,
  ...more
}: {
  path: string;
  name: string;
  summaries: Summaries;
  result: v.GenericSchema<unknown, unknown>;
  held(called: Called<Params>): Held;
  /** The answer to a heartbeat. */
  answer?: v.GenericSchema<unknown, unknown>;
  params?: v.GenericSchema<unknown, Params>;
  errors?: Record<number, readonly string[]>;
  requiredHeaders?: readonly string[];
}): Record<keyof Summaries, Route> {
  const common = { ...callback, ...more, errors };
  const heldBy = (context: Pick<Called<unknown>, "app" | "headers"> & { params: unknown }) =>
    held(context as Called<Params>);
  return {
    heartbeat: route({
      ...common,
      path: `${path}/heartbeat`,
      operationId: `renew${name}Lease`,
      summary: summaries.heartbeat,
      body: Heartbeat,
      responses: { 200: answer },
      handle: (context) => heldBy(context).renew(context.body),
    }),
    fail: route({
      ...common,
      path: `${path}/fail`,
      operationId: `fail${name}`,
      summary: summaries.fail,
      body: Failure,
      responses: { 200: result },
      handle: (context) => heldBy(context).fail(context.body),
    }),
    release: route({
      ...common,
      path: `${path}/release`,
      operationId: `release${name}`,
      summary: summaries.release,
      responses: { 200: result },
      handle: (context) => heldBy(context).release(),
    }),
    artifacts: route({
      ...common,
      path: `${path}/artifacts`,
      operationId: `sign${name}Artifacts`,
      summary: summaries.artifacts,
      body: SignArtifacts,
      responses: { 200: SignedArtifacts },
      handle: (context) => heldBy(context).sign(context.body),
    }),
  };
}
