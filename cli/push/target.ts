import { UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { isLocked } from "#storage/db/lock.ts";
import { type Admin, connect, serverUrl } from "../connect.ts";

type Tenant = { id: number; slug: string; status: string };

export type Target = {
  server: string;
  /** Headers with the credential. */
  headers: Record<string, string>;
  /** The admin token belongs to no tenant, so requests name one. */
  tenantId?: number;
};

type Given = { server: string | undefined; key: string | undefined; tenant: string | undefined };

/**
 * The named server with the key, else the server that holds the data directory: with the key, or with the admin token of
 * the directory for its only tenant, which is created if there is none. Throws a UserError that says what to set.
 */
export async function targetOf(config: Config, { server, key, tenant }: Given): Promise<Target> {
  if (server !== undefined) {
    const address = serverUrl(server);
    if (!key) throw new UserError(`Set an API key of ${address} with VODBOX_KEY or --key.`, 2);
    return { server: address, headers: { "x-api-key": key } };
  }
  if (!isLocked(config.data_dir))
    throw new UserError(
      `No server runs on ${config.data_dir}: start one with vodbox serve, or specify one with --server (VODBOX_SERVER) and VODBOX_KEY.`,
      2,
    );
  const admin = await connect(config, { isLocal: true });
  if (key) return { server: admin.address, headers: { "x-api-key": key } };
  return { server: admin.address, headers: admin.headers, tenantId: await tenantOf(admin, tenant) };
}

async function tenantOf(admin: Admin, named: string | undefined): Promise<number> {
  const path = "/api/v1/admin/tenants";
  if (named !== undefined) return (await admin.call<Tenant>("GET", `${path}/${encodeURIComponent(named)}`)).id;
  const tenants = (await admin.call<Tenant[]>("GET", "/api/v1/tenants?limit=3")).filter(
    ({ status }) => status !== "deleting",
  );
  const [only, other] = tenants;
  if (other)
    throw new UserError("The server has several tenants: choose one with --tenant SLUG, or set VODBOX_KEY.", 2);
  if (only) return only.id;
  const created = await admin.call<Tenant>("POST", path, { name: "Default", slug: "default" });
  process.stderr.write("vodbox: created the tenant default.\n");
  return created.id;
}
