import { and, asc, eq, gt, sql } from "drizzle-orm";
import { assets } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { disagreement, placeOf } from "./migration/place.ts";

export type Finding = { check: string; ok: boolean; detail: string };
const PAGE = 200;
const NAMED = 5;

/** What is well and what is not. `deep` also asks for every published object; memory does not grow with their number. */
export async function inspect(app: App, { deep }: { deep: boolean }): Promise<Finding[]> {
  const findings = [
    await attempt("database", async () => {
      await app.db.get(sql`select count(*) from _migrations`);
      return "answers";
    }),
  ];
  const { objects } = app;
  if (!objects) return findings;
  findings.push(
    await attempt("storage", async () => {
      await objects.check();
      return `${objects.kind} storage takes and gives objects`;
    }),
  );
  if (deep) findings.push(await attempt("settings", () => agreeOnStorage(app)));
  if (deep) findings.push(await attempt("agreement", () => compare(app)));
  return findings;
}

/** Storage is where the settings say, or on its way. */
async function agreeOnStorage({ db, config }: App): Promise<string> {
  const place = await placeOf(db);
  const fault = disagreement(place, config.storage) ?? place?.error;
  if (fault) throw new Error(fault);
  if (!place || place.phase === "settled") return `objects lie in ${config.storage} storage, as the settings say`;
  return `storage is being migrated: ${place.phase}${place.paused ? ", paused" : ""}`;
}

async function attempt(check: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return { check, ok: true, detail: await look() };
  } catch (error) {
    return { check, ok: false, detail: (error as Error).message };
  }
}

/** Every ready asset's manifests, pictures and source are in storage. */
async function compare(app: App): Promise<string> {
  const missing: string[] = [];
  let missed = 0;
  let checked = 0;
  for (let after = 0; ; ) {
    const rows = await app.db
      .select({
        id: assets.id,
        manifest: assets.manifestPath,
        dash: assets.dashManifestPath,
        thumbnail: assets.thumbnailPath,
        storyboard: assets.storyboardPath,
        mp4: assets.mp4Path,
        source: assets.sourceKey,
      })
      .from(assets)
      .where(and(eq(assets.playbackStatus, "ready"), eq(assets.provider, "managed"), gt(assets.id, after)))
      .orderBy(asc(assets.id))
      .limit(PAGE)
      .all();
    for (const { id, ...keys } of rows) {
      after = id;
      for (const key of Object.values(keys)) {
        // Media that came ready to play may have come without a source.
        if (!key) continue;
        checked++;
        if (await app.objects?.head(key)) continue;
        missed++;
        if (missing.length < NAMED) missing.push(`asset ${id}: ${key}`);
      }
    }
    if (rows.length < PAGE) break;
  }
  if (missed === 0) return `${checked} published objects are all in storage`;
  throw new Error(
    `${missed} of ${checked} published objects are missing from storage: ${missing.join(", ")}${missed > NAMED ? " …" : ""}`,
  );
}
