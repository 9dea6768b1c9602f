import * as v from "valibot";
import { SCOPES } from "#platform/http/caller.ts";
import { toRecord } from "#platform/http/records.ts";
import { ClientTime, Name, NullableTime } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CreatedAt,
  ExpiresAt,
  NameField,
  RecordId,
  RevokedAt,
  TenantIdField,
  TenantIdFromClient,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import type { ApiKeyRow } from "#storage/db/schema.ts";

const Scopes = v.pipe(
  v.array(v.picklist(SCOPES, `must be among ${SCOPES.join(", ")}`), "must be an array of scopes"),
  v.minLength(1, "must contain at least one scope"),
  v.transform((scopes) => [...new Set(scopes)]),
);

export const KeyWrite = v.object({
  tenant_id: TenantIdFromClient,
  name: describedAs(NameField, v.optional(Name(200), "SDK key")),
  scopes: v.pipe(v.optional(Scopes, ["assets:read"]), v.description("What the key permits")),
  expires_at: describedAs(ExpiresAt, v.optional(v.nullable(ClientTime))),
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
    id: RecordId,
    tenant_id: TenantIdField,
    name: NameField,
    scopes: v.pipe(v.array(v.string()), v.description("What the key permits")),
    last_four: v.pipe(v.string(), v.description("The last four characters of the token")),
    expires_at: v.nullable(ExpiresAt),
    last_used_at: v.pipe(
      NullableTime,
      v.description("Time of the last use, accurate to a minute; null if it was never used"),
    ),
    last_used_address: v.pipe(
      v.nullable(v.string()),
      v.description("The client's address at the last use; null if it was never used"),
    ),
    revoked_at: v.nullable(RevokedAt),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("ApiKey"),
);
export const NewApiKey = v.object({
  ...ApiKey.entries,
  token: v.optional(v.pipe(v.string(), v.description("Plaintext token; returned once, not by a replayed request"))),
});

export const toApiKey = (row: ApiKeyRow) => toRecord(ApiKey, row);
