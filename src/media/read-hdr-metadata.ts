import * as v from "valibot";
import {
  CHROMATICITY_UNITS,
  type Chromaticity,
  type ContentLight,
  type HdrMetadata,
  LUMINANCE_UNITS,
  type MasteringDisplay,
  NO_HDR_METADATA,
} from "#lib/codecs";
import { MediaError } from "./error.ts";
import { type Binaries, run, type SourceRun, untrustedInput } from "./ffmpeg.ts";
import type { AdditionalPlan } from "./plan.ts";

/** The peak of PQ (ITU-R BT.2100, table 4). */
const MAX_LUMINANCE = 10_000 * LUMINANCE_UNITS;
const MAX_LIGHT = 65_535;

const SIDE_DATA = v.object({
  ...v.entriesFromList(
    [
      ...["red_x", "red_y", "green_x", "green_y", "blue_x", "blue_y", "white_point_x", "white_point_y"],
      ...["max_luminance", "min_luminance"],
    ] as const,
    v.optional(v.string()),
  ),
  max_content: v.optional(v.number()),
  max_average: v.optional(v.number()),
});
type SideData = v.InferOutput<typeof SIDE_DATA>;
const WithSideData = v.object({ side_data_list: v.optional(v.array(SIDE_DATA), []) });
const Output = v.object({
  frames: v.optional(v.array(WithSideData), []),
  streams: v.optional(v.array(WithSideData), []),
});

const NAMES = Object.keys(SIDE_DATA.entries).join(",");
const ENTRIES = `stream=index:stream_side_data=${NAMES}:frame=pix_fmt:frame_side_data=${NAMES}`;

/** The HDR metadata of a source, where one of these codecs keeps them; else null. Throws as `readHdrMetadata`. */
export async function keptHdrMetadata(
  additional: readonly AdditionalPlan[],
  source: Omit<Parameters<typeof readHdrMetadata>[0], "track">,
): Promise<HdrMetadata | null> {
  const track = additional.find(({ hdr }) => hdr)?.plan.video.track.index;
  return track === undefined ? null : readHdrMetadata({ ...source, track });
}

/**
 * The static HDR metadata of a video track, from its first frame, else from the container. The dynamic metadata of HDR10+ and
 * Dolby Vision are not read. Throws MediaError `aborted`; a fault of the source is reported by its encode.
 */
export async function readHdrMetadata({
  input,
  track,
  binaries,
  run: common,
}: {
  input: string;
  track: number;
  binaries: Binaries;
  run: SourceRun;
}): Promise<HdrMetadata> {
  const args = ["-hide_banner", "-loglevel", "error", "-select_streams", String(track), "-read_intervals", "%+#1"];
  try {
    const stdout = await run(binaries.ffprobe, {
      ...common,
      reads: [input],
      // The output directory may not exist yet.
      writes: [],
      args: [...args, "-show_entries", ENTRIES, "-of", "json", ...untrustedInput(input)],
      timeLimitMs: 60_000,
    });
    const { frames, streams } = v.parse(v.pipe(v.string(), v.parseJson(), Output), stdout.toString("utf8"));
    const all = [...frames, ...streams].flatMap((one) => one.side_data_list);
    const first = <T>(read: (data: SideData) => T | null) => all.map(read).find((one) => one !== null) ?? null;
    return { mastering: first(masteringOf), light: first(lightOf) };
  } catch (error) {
    if (error instanceof MediaError && error.code === "aborted") throw error;
    return NO_HDR_METADATA;
  }
}

function masteringOf(data: SideData): MasteringDisplay | null {
  const at = (text: string | undefined, units: number) => {
    const [num, den] = (text ?? "").split("/").map(Number);
    return Math.round(((num ?? Number.NaN) * units) / (den ?? Number.NaN));
  };
  const point = (x: string | undefined, y: string | undefined): Chromaticity => [
    at(x, CHROMATICITY_UNITS),
    at(y, CHROMATICITY_UNITS),
  ];
  const mastering = {
    red: point(data.red_x, data.red_y),
    green: point(data.green_x, data.green_y),
    blue: point(data.blue_x, data.blue_y),
    white: point(data.white_point_x, data.white_point_y),
    maxLuminance: at(data.max_luminance, LUMINANCE_UNITS),
    minLuminance: at(data.min_luminance, LUMINANCE_UNITS),
  };
  const { red, green, blue, white, maxLuminance, minLuminance } = mastering;
  const isValid =
    [...red, ...green, ...blue, ...white].every((one) => one >= 0 && one <= CHROMATICITY_UNITS) &&
    minLuminance >= 0 &&
    maxLuminance > minLuminance &&
    maxLuminance <= MAX_LUMINANCE;
  return isValid ? mastering : null;
}

/** Zero means unknown (CTA-861.3). */
function lightOf({ max_content: maxContent = 0, max_average: maxAverage = 0 }: SideData): ContentLight | null {
  const isValid = [maxContent, maxAverage].every((one) => Number.isInteger(one) && one >= 0 && one <= MAX_LIGHT);
  return isValid && maxContent > 0 ? { maxContent, maxAverage } : null;
}
