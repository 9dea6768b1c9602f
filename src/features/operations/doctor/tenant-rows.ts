import type { App } from "#app.ts";
import { deleteTenantRows, missingTenants } from "#features/tenants/tenant-rows.ts";
import type { Check } from "./finding.ts";

/** Looks for rows of tenants that do not exist any more; `fix` deletes them. Throws when some are left. */
export const examineTenantRows =
  (app: App, { fix }: { fix: boolean }): Check =>
  async () => {
    const missing = await missingTenants(app);
    if (missing.length === 0) return "all rows belong to a tenant";
    const named = `rows of ${missing.length === 1 ? "a deleted tenant" : `${missing.length} deleted tenants`} (${missing.slice(0, 10).join(", ")})`;
    if (!fix) throw new Error(`there are ${named}; run vodbox admin doctor --fix to delete them`);
    let fixed = 0;
    for (const id of missing) fixed += await deleteTenantRows(app, id);
    return { detail: `${named} were deleted`, fixed };
  };
