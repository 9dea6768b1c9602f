import type { NewInvitation, ResetLink, User } from "#build/client/methods.ts";
import { type Column, line, printJson, printList, printRecord } from "../print.ts";
import { relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { readPassword } from "./password.ts";
import { tenantId } from "./tenant.ts";

type Options = { tenant?: string; email?: string; name?: string; role?: string; passwordStdin?: boolean };
const path = "/api/v1/admin/users";
const at = (ref: string | undefined) => `${path}/${encodeURIComponent(ref ?? "")}`;

const COLUMNS: Column<User>[] = [
  ["ID", (user) => user.id],
  ["E-MAIL", (user) => user.email_address],
  ["ROLE", (user) => user.role],
  ["TENANT", (user) => user.tenant_id],
  ["SINCE", (user) => relative(user.created_at)],
];

export async function create({ admin, json, options }: CommandContext<Options>): Promise<void> {
  const tenant = await tenantId(admin, options.tenant ?? "");
  const password = await readPassword(options.passwordStdin === true);
  const { email, name, role } = options;
  const body = { tenant_id: tenant, email_address: email, name, role, password };
  printRecord(await admin.call<User>("POST", path, body), json);
}

export async function list({ admin, json, options }: CommandContext<Options>): Promise<void> {
  const of = options.tenant === undefined ? "" : `?tenant_id=${await tenantId(admin, options.tenant)}`;
  printList(await admin.call<User[]>("GET", `${path}${of}`), COLUMNS, json);
}

export async function invite({ admin, json, args, options }: CommandContext<Options>): Promise<void> {
  const body = { tenant_id: await tenantId(admin, options.tenant ?? ""), email: args[0], role: options.role };
  const invitation = await admin.call<NewInvitation>("POST", "/api/v1/users/invitations", body);
  if (json) printJson(invitation);
  else line(`${invitation.url}\nThe URL works once, for 72 hours. Send it to ${args[0]}.`);
}

export async function role({ admin, json, args }: CommandContext): Promise<void> {
  printRecord(await admin.call<User>("PATCH", at(args[0]), { role: args[1] }), json);
}

export async function passwd({ admin, json, args, options }: CommandContext<Options>): Promise<void> {
  const password = await readPassword(options.passwordStdin === true);
  printRecord(await admin.call<User>("PATCH", at(args[0]), { password }), json);
}

export async function resetLink({ admin, json, args }: CommandContext): Promise<void> {
  const link = await admin.call<ResetLink>("POST", `${at(args[0])}/reset_link`);
  if (json) printJson(link);
  else line(`${link.url}\nThe link works once, for an hour. Send it to ${args[0]}.`);
}

export async function totpOff({ admin, json, args }: CommandContext): Promise<void> {
  await admin.call("DELETE", `${at(args[0])}/totp`);
  if (json) printJson({ user: args[0], totp_enabled: false });
  else line(`The second factor of ${args[0]} is off.`);
}

export async function remove({ admin, json, args }: CommandContext): Promise<void> {
  await admin.call("DELETE", at(args[0]));
  if (json) printJson({ user: args[0], deleted: true });
  else line(`User ${args[0]} is deleted; the device tokens redeemed with the password are revoked.`);
}
