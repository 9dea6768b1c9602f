/**
 * In a transport stream ffmpeg counts time from the first of the tracks that it uses, elsewhere from the first of all; and
 * where times begin again, it continues after the tracks that it uses. A run over a part of the tracks has the times of a run
 * over all when it uses the others too; a range, which has no such places, only their first packets.
 */
export function clockOutput(used: readonly Track[], whole: Tracks, { isRange = false } = {}): string[] {
  if (!whole.isTransport) return [];
  const all = tracksOf(whole);
  const others = all.filter(({ index }) => used.every((one) => one.index !== index));
  const indexes = [...new Set(others.map(({ index }) => index))];
  const first = Math.min(...all.map(({ startSeconds }) => startSeconds));
  // Packets are only copied of a track whose parameters are known at the start.
  const codecs = indexes.map((index, at) => {
    const isLate = others.some((one) => one.index === index && one.startSeconds - first > LATE_SECONDS);
    return isLate ? [] : [`-c:${at}`, "copy"];
  });
  const maps = indexes.flatMap((index) => ["-map", `0:${index}`]);
  return maps.length > 0 ? [...maps, ...codecs.flat(), ...(isRange ? ["-frames", "1"] : []), "-f", "null", "-"] : [];
}

/** Less than what ffmpeg reads to know the tracks, at any bitrate that is usual. */
const LATE_SECONDS = 0.5;

type Track = { index: number; startSeconds: number };
type Tracks = { video: { track: Track } | null; audio: readonly { track: Track }[]; isTransport: boolean };
export const tracksOf = ({ video, audio }: Tracks): Track[] => [
  ...(video ? [video.track] : []),
  ...audio.map(({ track }) => track),
];
