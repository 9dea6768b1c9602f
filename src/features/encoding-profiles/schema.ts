import * as v from "valibot";
import { iso } from "#lib/base";
import { Id, QueryId } from "#platform/http/schemas.ts";
import { PROFILE_NAME, ProfileName, ProfileWatermark, profileEntries } from "#protocol/encoding-profile.ts";
import { describedAs } from "#protocol/fields.ts";
import { CreatedAt, NameField, UpdatedAt } from "#protocol/record-fields.ts";
import type { Profile } from "./queries.ts";

export const ProfileParams = v.object({
  name: describedAs(NameField, v.pipe(v.string(), v.maxLength(100), v.regex(PROFILE_NAME))),
});
export const ProfileOwner = v.object({
  tenant_id: v.optional(
    v.pipe(
      QueryId,
      v.description("With the admin token: the tenant whose profiles are meant; default: the operator's"),
    ),
  ),
});

export const ProfileWrite = v.object({
  name: describedAs(NameField, ProfileName),
  tenant_id: v.optional(
    v.pipe(v.nullable(Id), v.description("With the admin token; without it the profile is the operator's")),
    null,
  ),
  ...profileEntries,
});
export const ProfilePatch = v.partial(v.object(profileEntries));

const { watermark: _, ...definition } = profileEntries;
export const EncodingProfile = v.pipe(
  v.object({
    id: v.pipe(v.nullable(v.number()), v.description("Null for a built-in profile")),
    name: NameField,
    tenant_id: v.pipe(v.nullable(v.number()), v.description("Null for the operator's and for built-in profiles")),
    built_in: v.pipe(v.boolean(), v.description("Whether it exists on every server and cannot be changed")),
    version: v.pipe(v.number(), v.description("Incremented by each change")),
    ...definition,
    watermark: v.pipe(
      v.nullable(
        v.object({
          ...ProfileWatermark.entries,
          image_sha256: v.pipe(v.nullable(v.string()), v.description("Null until an image is set")),
        }),
      ),
      v.description("An image over the video; null for none"),
    ),
    created_at: v.nullable(CreatedAt),
    updated_at: v.nullable(UpdatedAt),
  }),
  v.title("EncodingProfile"),
);

export const toProfile = ({ row, name, definition, watermark }: Profile): v.InferInput<typeof EncodingProfile> => ({
  id: row?.id ?? null,
  name,
  tenant_id: row?.tenantId ?? null,
  built_in: row === null,
  version: row?.version ?? 1,
  ...definition,
  watermark: definition.watermark && { ...definition.watermark, image_sha256: watermark },
  created_at: row && iso(row.createdAt),
  updated_at: row && iso(row.updatedAt),
});
