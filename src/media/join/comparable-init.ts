import { codecOfSampleEntry } from "#lib/codecs";
import { type Box, boxes, sampleEntryOf } from "#lib/isobmff";

/**
 * A copy of an init segment without the bitrates that it states of its media (ISO/IEC 14496-12, 8.5.2.2, and the codec's own).
 * They differ in sources that were copied, and no decoder depends on them.
 */
export function comparableInit(init: Buffer): Buffer {
  const copy = Buffer.from(init);
  const entry = sampleEntryOf(copy);
  const codec = entry && codecOfSampleEntry(entry.type);
  const children = entry ? [...boxes(copy, entry.fieldsEnd, entry.end)] : [];
  const content = ({ start, end }: Box) => copy.subarray(start, end);
  for (const box of children.filter(({ type }) => type === "btrt")) content(box).fill(0);
  // The first one, which `readInit` has read.
  const configuration = children.find(({ type }) => type === codec?.configurationBox);
  if (configuration) codec?.bitrates?.(content(configuration)).fill(0);
  return copy;
}
