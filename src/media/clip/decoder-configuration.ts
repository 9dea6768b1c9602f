import { codecOfSampleEntry, type VideoCodec } from "#lib/codecs";
import { configurationOf, sampleEntryOf } from "#lib/isobmff";
import type { Sample } from "./fragments.ts";
import { ClipImpossible } from "./impossible.ts";
import { covers, withParameterSets } from "./parameter-sets.ts";

/** Frames with their init segment; the first one is a keyframe. */
type Coded = { init: Buffer; samples: readonly Pick<Sample, "data">[] };

/**
 * Whether a decoder of a rendition also decodes frames that were encoded for another init segment, without being configured
 * again. Of H.264 the rendition needs to have their parameter sets. In other codecs the configurations must be equal byte by
 * byte, because their encoders give all parameter sets the same ids: those of HEVC are only in the sample entry (ISO/IEC
 * 14496-15, 8.3.3), and AV1 has one sequence header at a time.
 */
export function canDecode(rendition: Coded, encoded: Coded): boolean {
  const own = decoderOf(rendition.init);
  const other = decoderOf(encoded.init);
  if (!own || !other || own.sampleEntry !== other.sampleEntry) return false;
  if (mergesConfigurations(own.codec)) return covers(rendition.init, encoded.init);
  if (!own.content.equals(other.content)) return false;
  const { configurationIn } = own.codec;
  if (!configurationIn) return true;
  const [mine, theirs] = [rendition, encoded].map(({ samples: [first] }) => first && configurationIn(first.data));
  return mine != null && theirs != null && mine.equals(theirs);
}

/**
 * An init segment with which also frames can be decoded that were encoded for another one. Throws ClipImpossible for a codec
 * whose configurations cannot be merged.
 */
export function withDecoderConfiguration(init: Buffer, encoded: Buffer): Buffer {
  const codec = decoderOf(init)?.codec;
  if (codec && mergesConfigurations(codec)) return withParameterSets(init, encoded);
  throw new ClipImpossible(
    `its ${codec?.name} has another decoder configuration than the encoder writes now, because the encoder or the profile ` +
      "has changed, or its video was copied; encode the asset again, or use the mode instant",
  );
}

/** Whether its encoder can give parameter sets other ids. */
const mergesConfigurations = (codec: VideoCodec): boolean => "foreignArguments" in codec;

/** The sample entry and the content of the box that configures the decoder; null for a codec that is not in the registry. */
function decoderOf(init: Buffer): { codec: VideoCodec; sampleEntry: string; content: Buffer } | null {
  const entry = sampleEntryOf(init);
  const codec = entry && codecOfSampleEntry(entry.type);
  if (!entry || codec?.kind !== "video") return null;
  const content = configurationOf(init);
  return content && { codec, sampleEntry: entry.type, content };
}
