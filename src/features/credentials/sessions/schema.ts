import * as v from "valibot";
import { ROLES } from "#model/enums.ts";
import { Name, oneOf } from "#platform/http/schemas.ts";
import { ExpiresAt } from "#protocol/record-fields.ts";
import { SESSION_SUBJECTS } from "#storage/db/schema.ts";
import { EmailAddress, NewPassword, Password } from "../devices/schema.ts";

/** One credential: the admin token, an API key, or a user's e-mail address and password. */
export const SignIn = v.pipe(
  v.object({
    admin_token: v.optional(v.pipe(Name(1024), v.description("The server's admin token"))),
    api_key: v.optional(v.pipe(Name(1024), v.description("The token of an API key"))),
    email: v.optional(v.pipe(EmailAddress, v.description("E-mail address of a user, with `password`"))),
    password: v.optional(Password),
    totp: v.optional(
      v.pipe(Name(100), v.description("A code of the user's authenticator app, or a recovery code, where that is on")),
    ),
  }),
  v.title("SignIn"),
);
export type Credential = v.InferOutput<typeof SignIn>;

export const SetUp = v.object({
  code: v.pipe(Name(100), v.description("The code in the address that the first start printed")),
  name: v.pipe(Name(200), v.description("Name of the tenant")),
  email: v.pipe(EmailAddress, v.description("E-mail address of the first user")),
  password: NewPassword,
});

export const SessionBody = v.pipe(
  v.object({
    subject: v.pipe(v.picklist(SESSION_SUBJECTS), v.description("What the session was begun with")),
    tenant_id: v.pipe(v.nullable(v.number()), v.description("Id of the tenant; null for the admin token")),
    role: v.pipe(v.nullable(oneOf(ROLES)), v.description("The role of the user; null for a key or the admin token")),
    scopes: v.pipe(v.array(v.string()), v.description("What the key permits")),
    csrf_token: v.pipe(v.string(), v.description("Goes into X-CSRF-Token with each change")),
    expires_at: ExpiresAt,
  }),
  v.title("Session"),
);
