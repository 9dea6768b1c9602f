import { type App, forApp } from "#app.ts";
import { type SpaceGuard, spaceGuard } from "#storage/objects/space.ts";

/** Keeps the disk reserve of the data directory (`VODBOX_MIN_FREE_BYTES`) free for writes other than objects. */
export const diskOf: (app: App) => SpaceGuard = forApp(({ config }) =>
  spaceGuard(config.data_dir, config.min_free_bytes),
);
