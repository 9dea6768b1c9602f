import * as v from "valibot";
import { THEMES } from "#model/enums.ts";
import { TenantIdInQuery } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { Id, Name, oneOf, Paging } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CreatedAt,
  ExpiresAt,
  LanguageField,
  NameField,
  RecordId,
  TenantIdField,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import type { InvitationRow, UserRow } from "#storage/db/schema.ts";
import { EmailAddress, NewPassword, Password, UserRole } from "../credentials/devices/schema.ts";
import { EmailField } from "./record-fields.ts";

const PersonName = v.pipe(Name(200), v.description("Name of the person"));
const TenantId = v.optional(v.pipe(Id, v.description("Required with the admin token")));

export const UserWrite = v.object({
  tenant_id: TenantId,
  email: describedAs(EmailField, EmailAddress),
  name: v.optional(v.nullable(PersonName)),
  role: UserRole,
  password: NewPassword,
});
export const UserPatch = v.object({
  email: describedAs(EmailField, v.optional(EmailAddress)),
  name: v.optional(v.nullable(PersonName)),
  role: v.optional(UserRole),
  password: v.optional(NewPassword),
});
export const UserQuery = v.object({ ...Paging, tenant_id: v.optional(TenantIdInQuery) });

export const TenantUser = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    email: EmailField,
    name: v.nullable(NameField),
    role: UserRole,
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("TenantUser"),
);
export const toTenantUser = (row: UserRow) =>
  toRecord(TenantUser, row, {
    email: row.emailAddress,
  });

export const InvitationWrite = v.object({
  tenant_id: TenantId,
  email: describedAs(EmailField, EmailAddress),
  role: UserRole,
});
const invitation = {
  id: RecordId,
  tenant_id: TenantIdField,
  email: EmailField,
  role: UserRole,
  created_at: CreatedAt,
  expires_at: ExpiresAt,
};
export const Invitation = v.pipe(v.object(invitation), v.title("Invitation"));
export const NewInvitation = v.pipe(
  v.object({
    ...invitation,
    url: v.optional(
      v.pipe(v.string(), v.description("Works once; it is shown only here, and not in a repeated response")),
    ),
  }),
  v.title("NewInvitation"),
);
export const toInvitation = (row: InvitationRow) =>
  toRecord(Invitation, row, {
    email: row.emailAddress,
  });

const TenantName = v.pipe(v.string(), v.description("Name of the tenant"));
export const Invited = v.pipe(
  v.object({ email: EmailField, role: UserRole, tenant_name: TenantName, expires_at: ExpiresAt }),
  v.title("Invited"),
);
export const Acceptance = v.object({ name: PersonName, password: NewPassword });

const ThemeField = v.pipe(v.string(), v.description("Of the console; null: the browser's"));
export const MePatch = v.object({
  name: v.optional(v.nullable(PersonName)),
  email: describedAs(EmailField, v.optional(EmailAddress)),
  language: v.optional(
    v.nullable(v.pipe(v.picklist(["en", "de"]), v.description("Of the console; null: the browser's"))),
  ),
  theme: describedAs(ThemeField, v.optional(v.nullable(oneOf(THEMES)))),
});
export const Me = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    tenant_name: TenantName,
    email: EmailField,
    name: v.nullable(NameField),
    role: UserRole,
    language: v.nullable(LanguageField),
    theme: v.nullable(ThemeField),
    totp_enabled: v.pipe(v.boolean(), v.description("Whether the second factor is on")),
    created_at: CreatedAt,
  }),
  v.title("Me"),
);
export const toMe = (row: UserRow, tenantName: string): v.InferInput<typeof Me> => {
  const { updated_at: _, ...user } = toTenantUser(row);
  return {
    ...user,
    tenant_name: tenantName,
    language: row.language,
    theme: row.theme,
    totp_enabled: row.totpSecret !== null,
  };
};
export const TotpCode = v.object({
  code: v.pipe(Name(100), v.description("Of the authenticator app, or a recovery code")),
});
export const PasswordChange = v.object({
  current_password: v.pipe(Password, v.description("The password until now")),
  new_password: NewPassword,
});

export const MySession = v.pipe(
  v.object({
    id: RecordId,
    is_current: v.pipe(v.boolean(), v.description("Whether it is the session of this request")),
    address: v.pipe(v.nullable(v.string()), v.description("Where it was begun")),
    user_agent: v.pipe(v.nullable(v.string()), v.description("The browser that began it")),
    created_at: CreatedAt,
    expires_at: v.nullable(ExpiresAt),
  }),
  v.title("MySession"),
);
