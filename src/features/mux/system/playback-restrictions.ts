import * as v from "valibot";
import { listRestrictions, requireRestriction } from "#features/playback-restrictions/queries.ts";
import { Domain } from "#features/playback-restrictions/schema.ts";
import { notFound } from "#lib/base";
import type { PlaybackRestrictionRow } from "#storage/db/schema-playback-ids.ts";
import { seconds } from "../assets/record.ts";
import { type Endpoint, endpoint, type MuxCall } from "../endpoint.ts";
import { Flag, fields, only, Paging } from "../fields.ts";
import { muxPage } from "../paging.ts";

const path = "/video/v1/playback-restrictions";
const native = "/api/v1/playback_restrictions";
const READS = { scopes: ["assets:read", "assets:write"] } as const;
const WRITES = { scopes: ["assets:write"] } as const;
const { cursor: _, ...paging } = Paging;
const RestrictionList = fields(paging);
const MAX_DOMAINS = 100;

const Referrer = fields({
  allowed_domains: v.pipe(
    v.array(Domain, "must be an array of domains"),
    v.maxLength(MAX_DOMAINS, `must have at most ${MAX_DOMAINS} entries`),
  ),
  allow_no_referrer: v.optional(Flag, false),
});
/** Nothing here estimates which user agents are risky. */
const UserAgent = fields({ allow_no_user_agent: v.optional(Flag, false), allow_high_risk_user_agent: only(true) });
const RestrictionCreate = fields({ referrer: Referrer, user_agent: v.optional(UserAgent) });

export const toMuxRestriction = (row: PlaybackRestrictionRow) => ({
  id: String(row.id),
  created_at: seconds(row.createdAt),
  updated_at: seconds(row.updatedAt),
  referrer: { allowed_domains: row.allowedDomains, allow_no_referrer: row.allowNoReferrer },
  user_agent: { allow_no_user_agent: row.allowNoUserAgent, allow_high_risk_user_agent: true },
});

const requireOwn = ({ app, caller, params: { id = "" } }: MuxCall) =>
  /^[1-9]\d{0,14}$/.test(id) ? requireRestriction(app.db, caller, Number(id)) : notFound("playback restriction");
const shown = async ({ app, caller }: MuxCall, id: number) =>
  toMuxRestriction(await requireRestriction(app.db, caller, id));

/** A change of an existing restriction. `bodyOf`: the fields of ours. */
const change = (name: string, bodyOf: (call: MuxCall) => Promise<object>) =>
  endpoint({
    ...WRITES,
    method: "PUT",
    path: `${path}/:id/${name}`,
    operation: "updatePlaybackRestriction",
    async handle(call) {
      const { id } = await requireOwn(call);
      await call.native("PATCH", `${native}/${id}`, await bodyOf(call));
      return shown(call, id);
    },
  });
const userAgentOf = ({ allow_no_user_agent }: v.InferOutput<typeof UserAgent>) => ({ allow_no_user_agent });

export const playbackRestrictionEndpoints: readonly Endpoint[] = [
  endpoint({
    ...WRITES,
    method: "POST",
    path,
    operation: "createPlaybackRestriction",
    status: 201,
    async handle(call) {
      const { referrer, user_agent: agent } = await call.body(RestrictionCreate);
      const body = { ...referrer, ...(agent && userAgentOf(agent)) };
      return shown(call, (await call.native<{ id: number }>("POST", native, body)).id);
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path,
    hasQuery: true,
    handle(call) {
      const query = call.query(RestrictionList);
      const batches = listRestrictions(call.app, call.caller, { tenantId: undefined, cursor: undefined });
      return muxPage(call, query, { batches, toWire: toMuxRestriction });
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path: `${path}/:id`,
    handle: async (call) => toMuxRestriction(await requireOwn(call)),
  }),
  endpoint({
    ...WRITES,
    method: "DELETE",
    path: `${path}/:id`,
    operation: "deletePlaybackRestriction",
    status: 204,
    handle: async (call) => call.native("DELETE", `${native}/${(await requireOwn(call)).id}`),
  }),
  change("referrer", (call) => call.body(Referrer)),
  change("user_agent", async (call) => userAgentOf(await call.body(UserAgent))),
];
