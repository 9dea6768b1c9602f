import type { CommonText } from "#web/console/texts/texts.tsx";
import type { Role } from "#web/console/types.ts";

/** Roles in the order in which a form offers them, with their names. */
export const ROLES: readonly [Role, CommonText][] = [
  ["viewer", "roleViewer"],
  ["editor", "roleEditor"],
  ["admin", "roleAdmin"],
];
export const roleText = (role: Role) => ROLES.find(([name]) => name === role)?.[1] ?? "roleViewer";
