import { execFileSync } from "node:child_process";
import type { Binaries } from "#media/ffmpeg.ts";
import { binaries } from "./sources.ts";

/** Whether the shipped ffmpeg encodes AV1: that of the nightly tier does, and a linked one does not. */
export const encodesAv1 = execFileSync(binaries.ffmpeg, ["-hide_banner", "-encoders"]).includes(" libsvtav1 ");

/**
 * Programs that encode AV1. Where the shipped ones do not, those of the system, which are of the same version: the encoder takes
 * minutes to compile.
 */
export const av1Binaries: Binaries = encodesAv1 ? binaries : { ffmpeg: "/usr/bin/ffmpeg", ffprobe: "/usr/bin/ffprobe" };

/** Settings with which a server and its workers use them. */
export const av1Environment = { VODBOX_FFMPEG: av1Binaries.ffmpeg, VODBOX_FFPROBE: av1Binaries.ffprobe };
