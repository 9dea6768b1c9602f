import { createHash } from "node:crypto";
import * as v from "valibot";
import { UserError } from "#lib/base";
import { EncodingSpec } from "#protocol/encoding-spec.ts";
import type { Api } from "./http.ts";

/**
 * The server's encoding specification of a profile, by default of the tenant's, and an identifier of it. Throws a UserError for a specification that this client
 * does not support.
 */
export async function servedSpec(
  call: Api,
  { profile, tenantId }: { profile: string | undefined; tenantId: number | undefined },
): Promise<{ spec: EncodingSpec; name: string }> {
  const query = new URLSearchParams({
    ...(profile !== undefined && { profile }),
    ...(tenantId !== undefined && { tenant_id: String(tenantId) }),
  });
  const served = await call<unknown>("GET", `/encoding_spec${query.size > 0 ? "?" : ""}${query}`);
  const parsed = v.safeParse(EncodingSpec, served, { abortEarly: true });
  if (!parsed.success) {
    const [issue] = parsed.issues;
    const path = v.getDotPath(issue) ?? "its form";
    const said = JSON.stringify(issue.input)?.slice(0, 40) ?? "nothing";
    throw new UserError(
      `The server's encoding specification has ${said} for ${path}, which this version of vodbox does not support. Use the server's version of vodbox, or push without --encode.`,
    );
  }
  const name = createHash("sha256").update(JSON.stringify(parsed.output)).digest("hex");
  return { spec: parsed.output, name };
}
