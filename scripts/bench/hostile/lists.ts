import { call } from "../processes.ts";
import { discarded, type HostileAttack, repeatedly, type Target } from "./attack.ts";

const ASSETS = 300;
const COLLECTIONS = 2000;
const TRACKS = 40;

const tags = Object.fromEntries(Array.from({ length: 95 }, (_, n) => [`tag${n}`, "x".repeat(1000)]));
const cues = Array.from({ length: 190 }, (_, n) => ({ start_ms: n, payload: { text: "x".repeat(1000) } }));

let filled = "";
/** Large rows through the API, as a tenant creates them. */
async function fill({ base, key, tenantId, assetId }: Target): Promise<void> {
  if (filled === base) return;
  filled = base;
  const send = (method: string, path: string, body: unknown) => call(base, method, path, body, { "x-api-key": key });
  for (let n = 0; n < COLLECTIONS; n++)
    await send("POST", "/api/v1/collections", {
      tenant_id: tenantId,
      collection: { name: `c${n}`, slug: `c${n}`, description: "x".repeat(10_000) },
    });
  for (let n = 0; n < TRACKS; n++)
    await send("POST", `/api/v1/assets/${assetId}/tracks`, { kind: "scene", name: `t${n}`, cues });
  for (let n = 0; n < ASSETS; n++) {
    const upload = { filename: `${n}.mp4`, bytes_expected: 1 };
    const { asset_id } = await call<{ asset_id: number }>(base, "POST", "/api/v1/uploads/initiate", upload, {
      "x-api-key": key,
    });
    await send("PATCH", `/api/v1/assets/${asset_id}/tags`, tags);
  }
}

const LISTS: Record<string, (target: Target) => string> = {
  assets: () => "/api/v1/assets",
  collections: () => "/api/v1/collections",
  "the tree of collections": () => "/api/v1/collections/tree",
  tracks: ({ assetId }) => `/api/v1/assets/${assetId}/tracks`,
  "an export": () => "/api/v1/assets/export?format=json",
};

export const lists: HostileAttack[] = Object.entries(LISTS).map(([name, path]) => ({
  name: `64 readers of ${name}`,
  prepare: fill,
  run: (target, signal) => repeatedly(signal, 64, () => discarded(target, path(target), { signal })),
}));
