import type { EncodingSpec } from "./encoding-spec.ts";
import { type Packet, type PassthroughOptions, packetsOf } from "./passthrough.ts";
import type { PlannedAudio } from "./plan.ts";
import type { AudioTrack, Probe } from "./probe.ts";

/** ISO/IEC 14496-3: what one packet of AAC-LC lasts. */
const FRAME_SAMPLES = 1024;
const SAMPLE_RATES = [44_100, 48_000];
/** An encoder's delay, which an edit list takes out: no longer than our own encoder's, since some players know no such lists. */
const MAX_DELAY_FRAMES = 1.1;
/** A tick of a container that counts in milliseconds, and a rounding. */
const GAP_SECONDS = 0.0016;

/**
 * The plan's sound, with those tracks marked that are copied: AAC-LC of one or two channels, in step with the picture
 * and without a gap. Throws MediaError `aborted`.
 */
export async function copyAudio(options: PassthroughOptions): Promise<PlannedAudio[]> {
  const { probe, plan, spec } = options;
  const chosen: PlannedAudio[] = [];
  for (const one of plan.audio) {
    const packets = isCandidate(one, probe) ? await packetsOf(options, one.track.index, keepingDelay) : null;
    chosen.push({ ...one, isCopied: packets !== null && isCopyable(packets, one.track, spec) });
  }
  return chosen;
}

/** Packets before 0, the encoder's delay, are to be decoded and thrown away: every player does that by itself. */
const keepingDelay = (csv: string) => csv.replaceAll(/^(-[^,\s]*,[^,\s]*,[^,\s]*)D/gm, "$1_");

const isCandidate = ({ track, padToSeconds }: PlannedAudio, probe: Probe) =>
  track.codec === "aac" &&
  track.profile === "LC" &&
  (track.channels === 1 || track.channels === 2) &&
  SAMPLE_RATES.includes(track.sampleRate) &&
  padToSeconds === 0 &&
  Math.abs(track.startSeconds - probe.startSeconds) < FRAME_SAMPLES / track.sampleRate;

/** Whether each packet begins where the one before it ends, the first at the picture's beginning. */
function isCopyable(
  packets: readonly Packet[],
  { sampleRate }: Pick<AudioTrack, "sampleRate">,
  { audio }: EncodingSpec,
): boolean {
  const first = packets[0]?.seconds;
  const frameSeconds = FRAME_SAMPLES / sampleRate;
  if (first === undefined || first > GAP_SECONDS || first < -MAX_DELAY_FRAMES * frameSeconds) return false;
  const bits = packets.reduce((sum, { bytes }) => sum + bytes * 8, 0);
  if (bits / (packets.length * frameSeconds) > audio.max_copied_bitrate) return false;
  return packets.every(({ seconds }, index) => Math.abs(seconds - first - index * frameSeconds) < GAP_SECONDS);
}
