import { type SpaceGuard, spaceGuard } from "../../storage/objects/space.ts";
import { type App, forApp } from "../app.ts";

/** Keeps the reserve of the disk of the data directory (`VODBOX_MIN_FREE_BYTES`) free, for what objects are not. */
export const diskOf: (app: App) => SpaceGuard = forApp(({ config }) =>
  spaceGuard(config.data_dir, config.min_free_bytes),
);
