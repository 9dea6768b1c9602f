import { type App, forApp } from "#app.ts";
import { randomName } from "#lib/base";
import { RENDITIONS_FOLDER } from "#live/renditions/messages.ts";
import { databaseFileOf } from "#platform/config/database-file.ts";

/** Whether other servers may receive streams, and deliver those of this one: they share a remote database, and objects. */
export const sharesStreams = ({ config, objects }: Pick<App, "config" | "objects">): boolean =>
  databaseFileOf(config) === null && objects !== null;

/** The prefix of the renditions of a stream whose objects have `prefix`. */
export const renditionsPrefix = (prefix: string): string => `${prefix}${RENDITIONS_FOLDER}/`;

const own = forApp(() => ({ id: randomName(16) }));

/** Identifies this process in the rows of the streams that it receives or completes. */
export const serverIdOf = (app: App): string => own(app).id;

/** How often a server writes that its streams run. */
export const HEARTBEAT_MS = 3000;
/** Without a heartbeat for so long, a publisher is not refused because of a stream on another server. */
export const PUBLISHER_TIMEOUT_MS = 10_000;
/** A stream whose server has not written for so long is over. */
export const DEAD_MS = 30_000;
/** After so long without its server, another one completes a recording from the stored segments. */
export const ABANDONED_MS = 120_000;
/** How long viewers of a stream that has ended can still read it. */
export const LINGER_MS = 10 * 60_000;
