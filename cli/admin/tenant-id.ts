import type { Admin } from "../connect.ts";

/** The number of a tenant that is named by id or slug. */
export const tenantId = async (admin: Admin, ref: string): Promise<number> =>
  (await admin.call<{ id: number }>("GET", `/api/v1/admin/tenants/${encodeURIComponent(ref)}`)).id;
