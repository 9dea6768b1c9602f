import { readFile } from "node:fs/promises";
import type { SigningKey } from "#build/client/methods.ts";
import type { Result } from "#clients/typescript/types.ts";
import { UserError } from "#lib/base";
import { type Column, line, printJson, printList, printRecord } from "../print.ts";
import { relative } from "../units.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";

type Options = { tenant: string; name: string; algorithm?: string; publicKey?: string };
const path = "/api/v1/signing_keys";

const COLUMNS: Column<SigningKey>[] = [
  ["ID", (key) => key.id],
  ["KEY ID", (key) => key.key_id],
  ["NAME", (key) => key.name],
  ["ALGORITHM", (key) => key.algorithm],
  ["CREATED", (key) => relative(key.created_at)],
  ["REVOKED", (key) => relative(key.revoked_at)],
];

export async function create({ admin, json, options }: CommandContext<Options>): Promise<void> {
  const { tenant, name, algorithm, publicKey } = options;
  const body = {
    tenant_id: await tenantId(admin, tenant),
    name,
    algorithm,
    ...(publicKey !== undefined && { public_key: await contentOf(publicKey) }),
  };
  const key = await admin.call<Result<"createSigningKey">>("POST", path, body);
  if (json) return printJson(key);
  // It has several lines, and the owner has it anyway.
  const { public_key: _, ...shown } = key;
  printRecord(shown, false);
  if (key.private_key !== undefined)
    line("\nSave the private key now (base64 of its PEM); it is not stored and not shown again.");
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new UserError(`The public key ${file} cannot be read: ${(error as Error).message}.`);
  }
}

export async function list({ admin, json, options }: CommandContext<Options>): Promise<void> {
  printList(
    await admin.call<SigningKey[]>("GET", `${path}?tenant_id=${await tenantId(admin, options.tenant)}`),
    COLUMNS,
    json,
  );
}

export async function revoke({ admin, json, args }: CommandContext): Promise<void> {
  await admin.call("DELETE", `${path}/${encodeURIComponent(args[0] ?? "")}`);
  if (json) printJson({ id: Number(args[0]), revoked: true });
  else line(`Signing key ${args[0]} is revoked.`);
}
