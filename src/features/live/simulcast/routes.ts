import * as v from "valibot";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { type Route, route } from "#platform/http/route.ts";
import { requireChannel, requireNotRevoked } from "../queries.ts";
import { liveStreams } from "../streams/live-streams.ts";
import { SimulcastTarget, TargetParams, TargetPatch, TargetWrite } from "./schema.ts";
import { createTarget, deleteTarget, listTargets, requireTarget, toTarget, updateTarget } from "./targets.ts";

const path = "/api/v1/live/channels/:id/targets";
const all = { path, tag: "Live", params: v.object({ id: RecordIdInPath }) } as const;
const one = { path: `${path}/:target_id`, tag: "Live", params: TargetParams } as const;

export const simulcastRoutes: Route[] = [
  route({
    ...all,
    method: "GET",
    scope: ["assets:read", "assets:write"],
    operationId: "listSimulcastTargets",
    summary: "List the simulcast targets of a channel, oldest first",
    responses: { 200: v.array(SimulcastTarget) },
    async handle({ app, caller, params: { id } }) {
      const channel = await requireChannel(app.db, caller, id);
      return (await listTargets(app.db, channel)).map((row) => toTarget(app, channel, row));
    },
  }),
  route({
    ...all,
    method: "POST",
    audited: true,
    scope: "assets:write",
    operationId: "createSimulcastTarget",
    summary: "Send the streams of a channel to another RTMP server too",
    body: TargetWrite,
    idempotent: {},
    responses: { 201: SimulcastTarget },
    errors: {
      409: ["channel_revoked"],
      422: ["validation_failed", "simulcast_target_limit_reached", "idempotency_key_reused"],
    },
    async handle({ app, caller, params: { id }, body, commit }) {
      const created = await commit(async (tx) => {
        const channel = requireNotRevoked(await requireChannel(tx, caller, id));
        return toTarget(app, channel, await createTarget(tx, app, channel, body));
      });
      liveStreams(app).targetsChanged();
      return created;
    },
  }),
  route({
    ...one,
    method: "GET",
    scope: ["assets:read", "assets:write"],
    operationId: "getSimulcastTarget",
    summary: "Get a simulcast target",
    responses: { 200: SimulcastTarget },
    async handle({ app, caller, params: { id, target_id } }) {
      const channel = await requireChannel(app.db, caller, id);
      return toTarget(app, channel, await requireTarget(app.db, channel, target_id));
    },
  }),
  route({
    ...one,
    method: "PATCH",
    audited: true,
    scope: "assets:write",
    operationId: "updateSimulcastTarget",
    summary: "Update a simulcast target",
    body: TargetPatch,
    responses: { 200: SimulcastTarget },
    errors: { 409: ["channel_revoked"], 422: ["validation_failed"] },
    async handle({ app, caller, params: { id, target_id }, body: patch }) {
      const updated = await app.write(async (tx) => {
        const channel = requireNotRevoked(await requireChannel(tx, caller, id));
        return toTarget(app, channel, await updateTarget(tx, app, { channel, id: target_id, patch }));
      });
      liveStreams(app).targetsChanged();
      return updated;
    },
  }),
  route({
    ...one,
    method: "DELETE",
    audited: true,
    scope: "assets:write",
    operationId: "deleteSimulcastTarget",
    summary: "Delete a simulcast target",
    responses: { 204: null },
    async handle({ app, caller, params: { id, target_id } }) {
      await app.write(async (tx) => deleteTarget(tx, app, await requireChannel(tx, caller, id), target_id));
      liveStreams(app).targetsChanged();
    },
  }),
];
