import { codecNameOf } from "#lib/codecs";
import type { MpdRepresentation, MpdSet, MpdTemplates } from "#lib/manifests";
import { INIT_NAME, SEGMENT_TEMPLATE } from "./arguments.ts";

/** Each rendition is a directory with its name. */
export const MPD_TEMPLATES: MpdTemplates = {
  initTemplate: `$RepresentationID$/${INIT_NAME}`,
  mediaTemplate: `$RepresentationID$/${SEGMENT_TEMPLATE}`,
};

type Video = { representation: MpdRepresentation; colors?: MpdSet["colors"] };

/**
 * The sets of video renditions. Players switch within a set, and only between representations of one codec. Codecs that
 * need fewer bits are last, and preferred, unless `prefersFirst`.
 */
export function videoSetsOf(videos: readonly Video[], { prefersFirst = false } = {}): MpdSet[] {
  const byCodec = Map.groupBy(videos, ({ representation }) => codecNameOf(representation.codec));
  return [...byCodec.values()].map((all, index): MpdSet => {
    const selectionPriority = byCodec.size > 1 ? (prefersFirst ? byCodec.size - index : index + 1) : undefined;
    const representations = all.map(({ representation }) => representation);
    return { kind: "video", language: null, isMain: true, selectionPriority, colors: all[0]?.colors, representations };
  });
}
