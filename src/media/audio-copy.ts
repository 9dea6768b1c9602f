import { audioCodecs } from "#lib/codecs";
import type { EncodingSpec } from "./encoding-spec.ts";
import { type Packet, type PassthroughOptions, packetsOf, packetsOfIndex } from "./passthrough.ts";
import { fillOf, type PlannedAudio } from "./plan.ts";
import type { AudioTrack, Probe } from "./probe.ts";

/** One tick of a container with millisecond timestamps, plus rounding. */
const GAP_SECONDS = 0.0016;

/**
 * The plan's audio, with the tracks marked that are copied: of the specified codec, playable by any device, in sync with
 * the video and without gaps. Throws MediaError `aborted`.
 */
export async function copyAudio(options: PassthroughOptions): Promise<PlannedAudio[]> {
  const { probe, plan, spec } = options;
  const chosen: PlannedAudio[] = [];
  for (const one of plan.audio) {
    const packets = isCandidate(one, probe, spec) ? await packetsWithDelay(options, one.track.index) : null;
    const isCopied = packets !== null && isContinuous(packets, one.track, spec);
    chosen.push(isCopied ? { ...one, isCopied, padToSeconds: 0, channels: one.track.channels } : one);
  }
  return chosen;
}

async function packetsWithDelay(options: PassthroughOptions, number: number): Promise<Packet[] | null> {
  const track = options.index?.tracks[number];
  const indexed = track?.kind === "audio" ? packetsOfIndex(track) : null;
  return indexed ?? (await packetsOf(options, number, keepingDelay));
}

/** Packets before 0, the encoder delay, are decoded and discarded; every player does that. */
const keepingDelay = (csv: string) => csv.replaceAll(/^(-[^,\s]*,[^,\s]*,[^,\s]*)D/gm, "$1_");

function isCandidate(
  { track, padToSeconds, surroundOf }: PlannedAudio,
  probe: Probe,
  { audio }: EncodingSpec,
): boolean {
  const { isCopyable, packetSamples } = audioCodecs[audio.codec];
  return (
    // Its layout is one that players know, whatever that of the source.
    surroundOf === null &&
    audio.loudness_lufs === null &&
    track.codec === audio.codec &&
    isCopyable(track) &&
    (audio.length_seconds ?? null) === null &&
    fillOf(track, padToSeconds, probe).isCopyable &&
    track.pauses.length === 0 &&
    Math.abs(track.startSeconds - probe.startSeconds) < packetSamples / track.sampleRate
  );
}

/** Whether each packet begins where the previous one ends, and the first at the start of the video. */
function isContinuous(
  packets: readonly Packet[],
  { sampleRate }: Pick<AudioTrack, "sampleRate">,
  { audio }: EncodingSpec,
): boolean {
  const first = packets[0]?.seconds;
  const { packetSamples, maxDelayPackets } = audioCodecs[audio.codec];
  const frameSeconds = packetSamples / sampleRate;
  if (first === undefined || first > GAP_SECONDS || first < -maxDelayPackets * frameSeconds) return false;
  const bits = packets.reduce((sum, { bytes }) => sum + bytes * 8, 0);
  if (bits / (packets.length * frameSeconds) > audio.max_copied_bitrate) return false;
  return packets.every(({ seconds }, index) => Math.abs(seconds - first - index * frameSeconds) < GAP_SECONDS);
}
