import type Hls from "hls.js";
import type { Level, ManifestParsedData } from "hls.js";

type Tracks = ManifestParsedData["audioTracks"];

const STEREO = 2;

/** The most channels of the audio groups of a level. */
const channelsOf = ({ audioGroups }: Level, tracks: Tracks): number =>
  tracks
    .filter(({ groupId }) => audioGroups?.includes(groupId))
    .reduce((most, { channels }) => Math.max(most, Number.parseInt(channels ?? "", 10) || STEREO), STEREO);

/**
 * A master playlist with 5.1 lists each video rendition with stereo, and again with 5.1 and a higher bitrate. hls.js would
 * take the second for a better quality, and change between both with the bandwidth. The output of browsers is stereo: only
 * the first ones are kept. For the event MANIFEST_PARSED, before anything is loaded.
 */
export function keepStereoLevels(hls: Hls, tracks: Tracks): void {
  const first = hls.levels[hls.firstLevel];
  const stereo = new Set(hls.levels.filter((one) => channelsOf(one, tracks) <= STEREO).map(({ uri }) => uri));
  for (let index = hls.levels.length - 1; index >= 0; index--) {
    const level = hls.levels[index];
    if (level && stereo.has(level.uri) && channelsOf(level, tracks) > STEREO) hls.removeLevel(index);
  }
  const firstLevel = first ? hls.levels.indexOf(first) : -1;
  if (firstLevel >= 0 && firstLevel !== hls.firstLevel) hls.firstLevel = firstLevel;
}
