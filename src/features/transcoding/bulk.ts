import * as v from "valibot";
import { type App, lockNamespace } from "#app.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { type Context, type Reply, route } from "#platform/http/route.ts";
import { Id, oneOf, PlaybackPolicy } from "#platform/http/schemas.ts";
import { CodeField, MessageField, RecordId } from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { possiblePolicy, putChange, putTags } from "../assets/change.ts";
import { removeAsset } from "../assets/delete.ts";
import { getAsset, ownCollection } from "../assets/queries.ts";
import { TagPatch } from "../assets/schema.ts";
import { retryWithin } from "./job-commands.ts";

const MAX_IDS = 1000;
/** Assets of one transaction, so that other writers do not wait. */
const BATCH = 10;
/** A transaction ends after this time, where the assets have many rows. */
const BATCH_MS = 20;
const ACTIONS = ["delete", "move", "tag", "policy", "retry"] as const;
/** The required parameter, by action. */
const PARAMETERS = { move: "collection_id", tag: "tags", policy: "playback_policy" } as const;
type Parameter = (typeof PARAMETERS)[keyof typeof PARAMETERS];

const BulkChange = v.object({
  ids: v.pipe(
    v.array(Id, "must be an array of asset ids"),
    v.minLength(1, "must contain at least one id"),
    v.maxLength(MAX_IDS, `must contain at most ${MAX_IDS} ids`),
    v.description("Ids of assets; each is changed once"),
  ),
  action: v.pipe(oneOf(ACTIONS), v.description("What to do with each asset")),
  collection_id: v.optional(v.pipe(v.nullable(Id), v.description("Required by `move`; null: no collection"))),
  tags: v.optional(v.pipe(TagPatch, v.description("Required by `tag`: merged into the tags; null removes one"))),
  playback_policy: v.optional(v.pipe(PlaybackPolicy, v.description("Required by `policy`"))),
});
type BulkChange = v.InferOutput<typeof BulkChange>;

const BulkResult = v.object({
  applied: v.pipe(v.array(v.number()), v.description("The assets that were changed, in the order of the request")),
  errors: v.pipe(
    v.array(v.object({ id: RecordId, code: CodeField, message: MessageField })),
    v.description("The others, and why"),
  ),
});
type BulkResult = v.InferOutput<typeof BulkResult>;

const ofCaller = lockNamespace<string>("bulk");

export const bulkRoutes = [
  route({
    method: "POST",
    path: "/api/v1/assets/bulk",
    scope: "assets:write",
    tag: "Assets",
    operationId: "changeAssets",
    summary: "Change up to 1,000 assets, each separately",
    expensive: "bulk",
    audited: true,
    body: BulkChange,
    idempotent: {},
    responses: { 200: BulkResult },
    errors: { 422: ["idempotency_key_reused"] },
    handle(context) {
      const { app, caller, body } = context;
      requireParameters(body);
      const owner = caller.kind === "key" ? `tenant ${caller.tenantId}` : caller.kind;
      // One at a time in all processes: a concurrent request with the same Idempotency-Key returns the first one's result.
      return ofCaller(app).withLock(owner, async () => (await context.earlier()) ?? changeAll(context));
    },
  }),
];

/** Throws 422 unless exactly the parameter of the action is given. */
function requireParameters(body: BulkChange): void {
  const wanted: Parameter | undefined = (PARAMETERS as Partial<Record<string, Parameter>>)[body.action];
  if (wanted !== undefined && body[wanted] === undefined)
    throw new HttpError(422, "parameter_missing", `${wanted}: is required by ${body.action}`, {
      details: { [wanted]: ["is required"] },
    });
  for (const name of Object.values(PARAMETERS))
    if (name !== wanted && body[name] !== undefined) invalid(name, `is not a parameter of ${body.action}`);
}

/**
 * Small transactions, with others between them. With an Idempotency-Key the result is stored in one more: when the server
 * is killed before that, a repeated request applies the change again.
 */
async function changeAll({
  app,
  caller,
  body,
  commit,
}: Context<unknown, unknown, BulkChange>): Promise<BulkResult | Reply> {
  const ids = [...new Set(body.ids)];
  const result: BulkResult = { applied: [], errors: [] };
  for (let from = 0; from < ids.length; ) {
    const some = ids.slice(from, from + BATCH);
    const outcomes = await app.write(async (tx) => {
      const until = performance.now() + BATCH_MS;
      const all: (HttpError | null)[] = [];
      for (const id of some) {
        all.push(await changeOne(tx, app, caller, id, body));
        if (performance.now() >= until) break;
      }
      return all;
    });
    from += outcomes.length;
    for (const [index, error] of outcomes.entries()) {
      const id = some[index] as number;
      if (error === null) result.applied.push(id);
      else result.errors.push({ id, code: error.code, message: error.message });
    }
  }
  return commit(async () => result);
}

/** Null, or why the asset was not changed. Every check precedes the first write, so a refused asset is unchanged. */
async function changeOne(tx: Db, app: App, caller: Caller, id: number, change: BulkChange): Promise<HttpError | null> {
  try {
    await apply(tx, app, (await getAsset(tx, caller, id)) ?? notFound("asset"), change);
    return null;
  } catch (error) {
    if (error instanceof HttpError) return error;
    throw error;
  }
}

async function apply(tx: Db, app: App, asset: AssetRow, change: BulkChange): Promise<void> {
  switch (change.action) {
    case "delete":
      await removeAsset(tx, app, asset);
      return;
    case "move": {
      const collectionId = await ownCollection(tx, asset.tenantId, change.collection_id ?? null);
      await putChange(tx, app, asset, { collectionId });
      return;
    }
    case "tag":
      await putTags(tx, app, asset, change.tags ?? {});
      return;
    case "policy": {
      const policy = change.playback_policy ?? asset.playbackPolicy;
      await putChange(tx, app, asset, { playbackPolicy: possiblePolicy(asset, policy) });
      return;
    }
    case "retry":
      await retryWithin(tx, app, asset);
  }
}
