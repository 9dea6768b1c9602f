import type { App } from "#app.ts";
import { findPublicAsset } from "#features/assets/queries.ts";
import { findShareByCode } from "#features/shares/queries.ts";
import { shareEnded, shareStatus } from "#features/shares/rules.ts";
import { requireActiveTenant } from "#features/tenants/active.ts";
import { notFound } from "#lib/base";
import type { AssetRow, ShareRow } from "#storage/db/schema.ts";

export type Shared = { share: ShareRow; asset: AssetRow };

/**
 * The share of a URL and its asset. Throws 404, 403 `tenant_suspended`, and 410 `share_ended` when it was deleted or has
 * expired, or has had all its plays, except for a viewer who `isPlaying`.
 */
export async function requireOpenShare(
  app: App,
  code: string,
  isPlaying: (shared: Shared) => Promise<boolean> = async () => false,
): Promise<Shared> {
  const share = (await findShareByCode(app, code)) ?? notFound("share");
  if (share.deletedAt !== null) throw shareEnded();
  const asset = (await findPublicAsset(app, String(share.assetId))) ?? notFound("asset");
  await requireActiveTenant(app, share.tenantId);
  const status = shareStatus(share, app.clock.now());
  if (status === "expired" || (status === "played_out" && !(await isPlaying({ share, asset })))) throw shareEnded();
  return { share, asset };
}
