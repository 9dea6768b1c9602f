import { join } from "node:path";
import type { App } from "#app.ts";
import { randomName } from "#lib/base";

/** The folder of streams below the data directory. */
const FOLDER = "live";

export const liveFolder = ({ config }: Pick<App, "config">) => join(config.data_dir, FOLDER);

/** The folder of a new clip of the stream. */
export const newClipFolder = (app: App, stream: string) => join(liveFolder(app), `${stream}.clip-${randomName(8)}`);
