import * as v from "valibot";
import { ROLES } from "#model/enums.ts";
import { toRecord } from "#platform/http/records.ts";
import { Id, Name, oneOf, Paging, QueryId, Time } from "#platform/http/schemas.ts";
import type { UserRow } from "#storage/db/schema.ts";

/** In the form that is compared: mail servers that distinguish Ann@ from ann@ do not occur in practice. */
export const EmailAddress = v.pipe(
  Name(254),
  v.trim(),
  v.toLowerCase(),
  v.regex(/^[^\s@<>(),;:"[\]\\]+@[^\s@<>(),;:"[\]\\]+$/, "must be an e-mail address"),
);
export const Password = Name(1024);
export const NewPassword = v.pipe(Password, v.minLength(8, "must have at least 8 characters"));

export const UserWrite = v.object({
  tenant_id: Id,
  email_address: EmailAddress,
  name: v.optional(v.nullable(Name(200))),
  role: v.optional(oneOf(ROLES), "admin"),
  password: NewPassword,
});
export const UserPatch = v.object({ password: v.optional(NewPassword), role: v.optional(oneOf(ROLES)) });
export const UserQuery = v.object({ ...Paging, tenant_id: v.optional(QueryId) });
export const User = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    email_address: v.string(),
    name: v.nullable(v.string()),
    role: oneOf(ROLES),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("User"),
);
export const toUser = (row: UserRow) => toRecord(User, row);

export const PairingCode = v.pipe(
  v.object({ tenant_id: v.number(), pairing_code: v.string(), expires_at: Time }),
  v.title("PairingCode"),
);

/** Either an email address and password, or a pairing code. */
export const Redeem = v.object({
  email_address: v.optional(EmailAddress),
  password: v.optional(Password),
  totp: v.optional(v.pipe(Name(100), v.description("A code of the second factor, where it is on"))),
  pairing_code: v.optional(Name(64)),
  device_name: v.optional(Name(200), "Desktop device"),
});
export const DeviceToken = v.pipe(
  v.object({
    token: v.string(),
    token_type: v.literal("api_key"),
    api_key_id: v.number(),
    tenant_id: v.number(),
    scopes: v.array(v.string()),
    device_name: v.string(),
  }),
  v.title("DeviceToken"),
);
