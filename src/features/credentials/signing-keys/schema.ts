import * as v from "valibot";
import { toRecord } from "#platform/http/records.ts";
import { Name, Text } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CreatedAt,
  NameField,
  RecordId,
  RevokedAt,
  TenantIdField,
  TenantIdFromClient,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import { SIGNING_ALGORITHMS, type SigningKeyRow } from "#storage/db/schema.ts";

/** Base64 of the PEM of the longest accepted key is far shorter. */
const MAX_PEM = 8000;

export const SigningKeyWrite = v.object({
  tenant_id: v.optional(TenantIdFromClient),
  name: describedAs(NameField, v.optional(Name(200), "Signing key")),
  algorithm: v.optional(
    v.pipe(
      v.picklist(SIGNING_ALGORITHMS, `must be ${SIGNING_ALGORITHMS.join(" or ")}`),
      v.description("Default: the type of public_key, else RS256"),
    ),
  ),
  public_key: v.optional(
    v.pipe(
      Text(MAX_PEM),
      v.description(
        "PEM, or base64 of it: RSA from 2,048 to 8,192 bits, or Ed25519. Without one the server makes a pair",
      ),
    ),
  ),
});

export const SigningKey = v.pipe(
  v.object({
    id: RecordId,
    key_id: v.pipe(v.string(), v.description("The `kid` of the tokens that it signs")),
    tenant_id: TenantIdField,
    name: NameField,
    algorithm: v.pipe(v.picklist(SIGNING_ALGORITHMS), v.description("Signature algorithm")),
    public_key: v.pipe(v.string(), v.description("SubjectPublicKeyInfo as PEM")),
    revoked_at: v.nullable(RevokedAt),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("SigningKey"),
);
export const NewSigningKey = v.object({
  ...SigningKey.entries,
  private_key: v.optional(
    v.pipe(
      v.string(),
      v.description(
        "Base64 of the PKCS#8 PEM, where the server made the pair: in this answer alone; a repeat has none",
      ),
    ),
  ),
});

export const toSigningKey = (row: SigningKeyRow) => toRecord(SigningKey, row);
