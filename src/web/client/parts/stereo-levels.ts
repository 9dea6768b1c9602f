import type Hls from "hls.js";

/**
 * A master playlist with 5.1 lists each video rendition twice: with stereo, then with 5.1 and a higher bitrate. hls.js would
 * take the second for a better quality, and change between both with the bandwidth. Browsers play sound in stereo: only the
 * first ones are kept. Before loading starts.
 */
export function keepStereoLevels(hls: Hls): void {
  const first = hls.levels[hls.firstLevel];
  // Sorted by bitrate.
  for (let index = hls.levels.length - 1; index > 0; index--) {
    const { uri } = hls.levels[index] ?? {};
    if (hls.levels.findIndex((one) => one.uri === uri) < index) hls.removeLevel(index);
  }
  const firstLevel = first ? hls.levels.indexOf(first) : -1;
  if (firstLevel >= 0 && firstLevel !== hls.firstLevel) hls.firstLevel = firstLevel;
}
