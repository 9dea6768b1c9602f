import * as v from "valibot";
import { SCOPES } from "#platform/http/caller.ts";
import { toRecord } from "#platform/http/records.ts";
import { ClientTime, Id, Name, NullableTime, Time } from "#platform/http/schemas.ts";
import type { ApiKeyRow } from "#storage/db/schema.ts";

const Scopes = v.pipe(
  v.array(v.picklist(SCOPES, `must be among ${SCOPES.join(", ")}`), "must be an array of scopes"),
  v.minLength(1, "must contain at least one scope"),
  v.transform((scopes) => [...new Set(scopes)]),
);

export const KeyWrite = v.object({
  tenant_id: Id,
  name: v.optional(Name(200), "SDK key"),
  scopes: v.optional(Scopes, ["assets:read"]),
  expires_at: v.optional(v.nullable(ClientTime)),
});

/** A month, for software that is released rarely. */
const MAX_GRACE_HOURS = 720;

export const KeyRotation = v.object({
  grace_hours: v.optional(
    v.pipe(
      v.number("must be a number"),
      v.minValue(0, "must be at least 0"),
      v.maxValue(MAX_GRACE_HOURS, `must be at most ${MAX_GRACE_HOURS}`),
      v.description("How long the old key still works; 0: it is revoked"),
    ),
    24,
  ),
});

export const ApiKey = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    name: v.string(),
    scopes: v.array(v.string()),
    last_four: v.string(),
    expires_at: NullableTime,
    last_used_at: NullableTime,
    last_used_address: v.nullable(v.string()),
    revoked_at: NullableTime,
    created_at: Time,
    updated_at: Time,
  }),
  v.title("ApiKey"),
);
export const NewApiKey = v.object({
  ...ApiKey.entries,
  token: v.optional(v.pipe(v.string(), v.description("Plaintext token; returned once, not by a replayed request"))),
});

export const toApiKey = (row: ApiKeyRow) => toRecord(ApiKey, row);
