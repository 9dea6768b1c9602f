import { type ProviderClient, ProviderRefused } from "../client.ts";
import { record, text } from "../json.ts";
import { prepared } from "../prepare.ts";

const pathOf = (id: string) => `/video/v1/assets/${encodeURIComponent(id)}`;
/** An asset of Mux as it is now. */
export const assetOf = async (client: ProviderClient, id: string) => record(record(await client.json(pathOf(id))).data);

/** The URL of the master, which Mux makes available for a day; null when it has none. */
export async function masterOf(
  client: ProviderClient,
  asset: Record<string, unknown>,
  id: string,
): Promise<string | null> {
  const current = record(asset.master);
  if (current.status === "ready" && text(current.url) !== null) return text(current.url);
  try {
    const body = { master_access: "temporary" };
    await client.json(`${pathOf(id)}/master-access`, { method: "PUT", body });
  } catch (error) {
    if (error instanceof ProviderRefused && error.status !== 401) return null;
    throw error;
  }
  return prepared(async () => {
    const { status, url } = record((await assetOf(client, id)).master);
    if (status === "ready") return text(url);
    return status === "preparing" ? "waiting" : null;
  });
}
