import type Hls from "hls.js";
import type { Level, ManifestParsedData } from "hls.js";

type Tracks = ManifestParsedData["audioTracks"];

const STEREO = 2;

/** Whether the audio of a level has more channels. */
const isSurround = ({ audioGroups }: Level, tracks: Tracks): boolean =>
  tracks.some(
    ({ groupId, channels }) => audioGroups?.includes(groupId) && Number.parseInt(channels ?? "", 10) > STEREO,
  );

/**
 * A master playlist with 5.1 lists each video rendition with stereo, and again with 5.1 and a higher bitrate. hls.js would
 * take the second for a better quality, and change between both with the bandwidth. The output of browsers is stereo: only
 * the first ones are kept. For the event MANIFEST_PARSED, before anything is loaded.
 */
export function keepStereoLevels(hls: Hls, tracks: Tracks): void {
  const { levels, firstLevel } = hls;
  const first = levels[firstLevel] as Level;
  const isRepeated = (one: Level) =>
    isSurround(one, tracks) && levels.some((other) => other.uri === one.uri && !isSurround(other, tracks));
  for (const level of levels.filter(isRepeated)) hls.removeLevel(hls.levels.indexOf(level));
  hls.firstLevel = Math.max(0, hls.levels.indexOf(first));
}
