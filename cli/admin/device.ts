import type { PairingCode } from "#build/client/methods.ts";
import { line, printJson } from "../print.ts";
import type { CommandContext } from "./command-context.ts";
import { tenantId } from "./tenant.ts";

export async function pair({ admin, json, options }: CommandContext<{ tenant: string }>): Promise<void> {
  const body = { tenant_id: await tenantId(admin, options.tenant) };
  const code = await admin.call<PairingCode>("POST", "/api/v1/admin/pairing_codes", body);
  if (json) return printJson(code);
  line(code.pairing_code);
  line(`\nEnter it on one device before ${code.expires_at}.`);
}
