import type { Rate } from "#lib/codecs";
import { isAudio, isVideo, type Stream } from "./tracks.ts";

/** Numbers as ffprobe writes them. */
type Counted = Stream & { nb_frames: string; nb_read_packets: string };

/** The streams of a source without declared tracks that have no packets. `read` finds those with packets in all of it. */
export async function withPackets<S extends Counted>(
  { format, streams }: { format: { format_name: string }; streams: readonly S[] },
  read: () => Promise<ReadonlySet<number>>,
): Promise<readonly S[]> {
  // The index of these files lists the packets of each track; other containers state any number.
  const isListed = /(^|,)mov(,|$)/.test(format.format_name);
  const isEmpty = (one: S) =>
    (isVideo(one) || isAudio(one)) && !(Number(one.nb_read_packets) > 0) && !(isListed && Number(one.nb_frames) > 0);
  if (!streams.some(isEmpty)) return streams;
  const found = await read();
  return streams.filter((one) => !isEmpty(one) || found.has(one.index));
}

/** Streams whose parameters are only in their packets, which begin far behind the start. `reread` reads until then. */
export async function withParameters<S extends Counted>(
  streams: readonly S[],
  decodable: ReadonlySet<string>,
  reread: () => Promise<readonly S[]>,
): Promise<readonly S[]> {
  const isUnknown = (one: S) =>
    decodable.has(one.codec_name) && ((isVideo(one) && one.width === 0) || (isAudio(one) && one.channels === 0));
  if (!streams.some(isUnknown)) return streams;
  const found = await reread();
  return streams.map((one) => {
    const known = isUnknown(one) ? found.find(({ index }) => index === one.index) : undefined;
    return known ? { ...known, nb_read_packets: one.nb_read_packets } : one;
  });
}

/** A duration as ffprobe prints it; null when it is not stated. */
export function seconds(value: string): number | null {
  const parsed = Number.parseFloat(value);
  return Number.isFinite(parsed) && parsed > 0 ? parsed : null;
}

/** A rate as ffprobe prints it; a numerator of 0 when it is not stated. */
export function fraction(value: string): Rate {
  const [num = 0, den = 0] = value.split("/").map(Number);
  return num > 0 && den > 0 ? { num, den } : { num: 0, den: 1 };
}
