import * as v from "valibot";
import { ROLES, THEMES } from "#model/enums.ts";
import { toRecord } from "#platform/http/records.ts";
import { Id, Name, NullableTime, oneOf, Paging, QueryId, Time } from "#platform/http/schemas.ts";
import type { InvitationRow, UserRow } from "#storage/db/schema.ts";
import { EmailAddress, NewPassword, Password } from "../credentials/devices/schema.ts";

const Role = oneOf(ROLES);
const PersonName = v.pipe(Name(200), v.description("Name of the person"));
const TenantId = v.optional(v.pipe(Id, v.description("Required with the admin token")));

export const UserWrite = v.object({
  tenant_id: TenantId,
  email: EmailAddress,
  name: v.optional(v.nullable(PersonName)),
  role: Role,
  password: NewPassword,
});
export const UserPatch = v.object({
  email: v.optional(EmailAddress),
  name: v.optional(v.nullable(PersonName)),
  role: v.optional(Role),
  password: v.optional(NewPassword),
});
export const UserQuery = v.object({ ...Paging, tenant_id: v.optional(QueryId) });

export const TenantUser = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    email: v.string(),
    name: v.nullable(v.string()),
    role: oneOf(ROLES),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("TenantUser"),
);
export const toTenantUser = (row: UserRow) =>
  toRecord(TenantUser, row, {
    email: row.emailAddress,
  });

export const InvitationWrite = v.object({ tenant_id: TenantId, email: EmailAddress, role: Role });
const invitation = {
  id: v.number(),
  tenant_id: v.number(),
  email: v.string(),
  role: oneOf(ROLES),
  created_at: Time,
  expires_at: Time,
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

export const Invited = v.pipe(
  v.object({ email: v.string(), role: oneOf(ROLES), tenant_name: v.string(), expires_at: Time }),
  v.title("Invited"),
);
export const Acceptance = v.object({ name: PersonName, password: NewPassword });

export const MePatch = v.object({
  name: v.optional(v.nullable(PersonName)),
  email: v.optional(EmailAddress),
  language: v.optional(
    v.nullable(v.pipe(v.picklist(["en", "de"]), v.description("Of the console; null: the browser's"))),
  ),
  theme: v.optional(v.nullable(oneOf(THEMES))),
});
export const Me = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    tenant_name: v.string(),
    email: v.string(),
    name: v.nullable(v.string()),
    role: oneOf(ROLES),
    language: v.nullable(v.string()),
    theme: v.nullable(v.string()),
    totp_enabled: v.pipe(v.boolean(), v.description("Whether the second factor is on")),
    created_at: Time,
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
export const PasswordChange = v.object({ current_password: Password, new_password: NewPassword });

export const MySession = v.pipe(
  v.object({
    id: v.number(),
    is_current: v.boolean(),
    address: v.pipe(v.nullable(v.string()), v.description("Where it was begun")),
    user_agent: v.pipe(v.nullable(v.string()), v.description("The browser that began it")),
    created_at: Time,
    expires_at: NullableTime,
  }),
  v.title("MySession"),
);
