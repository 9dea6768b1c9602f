import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { paths } from "../build/paths.ts";
import { share } from "../build/share.ts";
import { staticFfmpeg } from "./build.ts";

/**
 * Compiles the complete ffmpeg into the cache (background.ts), and replaces the linked one, whose path is the argument, where a
 * server that runs from the sources finds it.
 */
/** What was built is usually tried first. */
const DELAY_MS = 60_000;

const [linked = ""] = process.argv.slice(2);
console.log(new Date().toISOString(), "start");
await sleep(DELAY_MS);
const { ffmpeg, ffprobe } = await staticFfmpeg(process.arch as "x64", "complete");
const shared = join(paths.assets, "bin/ffmpeg");
// The builder may have named other programs meanwhile.
const isLinked = existsSync(shared) && existsSync(linked) && readFileSync(shared).equals(readFileSync(linked));
if (isLinked) share({ ffmpeg, ffprobe });
console.log(new Date().toISOString(), `done: ${ffmpeg}`);
