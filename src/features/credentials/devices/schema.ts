import * as v from "valibot";
import { ROLES } from "#model/enums.ts";
import { TenantIdInQuery } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { Name, oneOf, Paging } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CreatedAt,
  ExpiresAt,
  NameField,
  RecordId,
  TenantIdField,
  TenantIdFromClient,
  TokenField,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import type { UserRow } from "#storage/db/schema.ts";

/** In the form that is compared: mail servers that distinguish Ann@ from ann@ do not occur in practice. */
export const EmailAddress = v.pipe(
  Name(254),
  v.trim(),
  v.toLowerCase(),
  v.regex(/^[^\s@<>(),;:"[\]\\]+@[^\s@<>(),;:"[\]\\]+$/, "must be an e-mail address"),
);
export const Password = v.pipe(Name(1024), v.description("Password, 8 to 1,024 characters"));
export const UserRole = v.pipe(
  oneOf(ROLES),
  v.description(
    "admin: everything of the tenant; editor: all but users, settings, keys, webhooks and billing; viewer: reads and plays",
  ),
);
export const NewPassword = v.pipe(Password, v.minLength(8, "must have at least 8 characters"));

const EmailAddressField = v.pipe(EmailAddress, v.description("Email address"));
export const UserWrite = v.object({
  tenant_id: TenantIdFromClient,
  email_address: EmailAddressField,
  name: describedAs(NameField, v.optional(v.nullable(Name(200)))),
  role: v.optional(UserRole, "admin"),
  password: NewPassword,
});
export const UserPatch = v.object({ password: v.optional(NewPassword), role: v.optional(UserRole) });
export const UserQuery = v.object({ ...Paging, tenant_id: v.optional(TenantIdInQuery) });
export const User = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    email_address: describedAs(EmailAddressField, v.string()),
    name: v.nullable(NameField),
    role: UserRole,
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("User"),
);
export const toUser = (row: UserRow) => toRecord(User, row);

const PairingCodeField = v.pipe(Name(64), v.description("Code that pairs one device, once"));
export const PairingCode = v.pipe(
  v.object({
    tenant_id: TenantIdField,
    pairing_code: describedAs(PairingCodeField, v.string()),
    expires_at: ExpiresAt,
  }),
  v.title("PairingCode"),
);

const DeviceName = v.pipe(Name(200), v.description("Name of the device, shown in the list of API keys"));
/** Either an email address and password, or a pairing code. */
export const Redeem = v.object({
  email_address: v.optional(EmailAddressField),
  password: v.optional(Password),
  totp: v.optional(v.pipe(Name(100), v.description("A code of the second factor, where it is on"))),
  pairing_code: v.optional(PairingCodeField),
  device_name: v.optional(DeviceName, "Desktop device"),
});
export const DeviceToken = v.pipe(
  v.object({
    token: TokenField,
    token_type: v.pipe(v.literal("api_key"), v.description("Always `api_key`")),
    api_key_id: v.pipe(v.number(), v.description("Id of the API key")),
    tenant_id: TenantIdField,
    scopes: v.pipe(v.array(v.string()), v.description("What the key permits")),
    device_name: describedAs(DeviceName, v.string()),
  }),
  v.title("DeviceToken"),
);
