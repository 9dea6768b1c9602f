import { readXml, type XmlElement, XmlFault } from "#lib/xml";
import { readMpd } from "../mpd-read.ts";
import { isShared, type SharedMedia } from "../shared-media.ts";
import { writeXml } from "../xml-write.ts";
import { ClipFault } from "./fault.ts";
import type { CutRange, Selection } from "./range.ts";
import { cutTimeline, readTimeline, type Timeline, writeTimeline } from "./timeline.ts";

type Cut = CutRange & { hasVideo: boolean };

/** Far above the number of representations, of which each has two. */
const MAX_REFERENCES = 10_000;

/**
 * A DASH manifest at `path`, cut to the range of the clip: its presentation begins at 0. Sheets of thumbnails are left
 * out, because a range of them cannot be described; players have the storyboard. Throws ClipFault when it is not a
 * single period with segment timelines, or refers to objects that the clip's playlists do not, and TooComplex.
 */
export function cutMpd(text: string, path: string, range: CutRange, shared: SharedMedia): string {
  const root = parsed(text);
  const periods = root.children.filter(({ name }) => name === "Period");
  const [period] = periods;
  if (root.name !== "MPD" || root.attributes.get("type") === "dynamic" || !period || periods.length > 1)
    throw new ClipFault("the DASH manifest is not a static one with a single period");
  const sets = period.children.filter((child) => child.name === "AdaptationSet" && typeOf(child) !== "image");
  const hasVideo = sets.some((set) => typeOf(set) === "video");
  const cut = { ...exactStart(sets, range, hasVideo), hasVideo };
  // Rounded up, so that no packet ends after it.
  const duration = `PT${Math.ceil((exactEnd(sets, cut) - cut.start) * 1000 - 1e-3) / 1000}S`;
  const bases = period.children.filter(({ name }) => name === "BaseURL");
  const manifestOf = (part: Part) =>
    changed(root, {
      attributes: { mediaPresentationDuration: duration },
      children: root.children.flatMap((child) => {
        if (child !== period) return ["BaseURL", "ProgramInformation"].includes(child.name) ? [child] : [];
        const children = [...bases, ...sets.map((set) => cutSet(set, cut, part))];
        return [changed(period, { attributes: { start: "PT0S", duration }, children })];
      }),
    });
  // Their numbers are consecutive, as those of the shared segments are.
  requireShared(manifestOf("first"), path, shared);
  requireShared(manifestOf("last"), path, shared);
  return writeXml(manifestOf("all"));
}

/** `first` and `last`: with only that segment of each representation. */
type Part = "first" | "last" | "all";

function requireShared(mpd: XmlElement, path: string, shared: SharedMedia): void {
  const { references, faults } = readMpd(mpd, path, MAX_REFERENCES);
  if (faults.length > 0) throw new ClipFault("the DASH manifest is malformed");
  if (references.some((one) => one.span !== undefined || !isShared(shared, one.path)))
    throw new ClipFault("the DASH manifest refers to other segments than the HLS playlists");
}

export function parsed(text: string): XmlElement {
  try {
    return readXml(text);
  } catch (error) {
    if (error instanceof XmlFault) throw new ClipFault("the DASH manifest is malformed");
    throw error;
  }
}

type Change = { attributes?: Record<string, string | null>; children?: XmlElement[] };

/** A copy. An attribute that is null is removed. */
export function changed(element: XmlElement, { attributes = {}, children = element.children }: Change): XmlElement {
  const all = new Map(element.attributes);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) all.delete(name);
    else all.set(name, value);
  }
  return { ...element, attributes: all, children };
}

/** The first part of the media type, of the set or its first representation. */
export function typeOf(set: XmlElement): string {
  const representation = set.children.find(({ name }) => name === "Representation");
  const type = set.attributes.get("contentType") ?? set.attributes.get("mimeType");
  return (type ?? representation?.attributes.get("mimeType") ?? "").split("/")[0] as string;
}

/** The times of the playlists are rounded: the clip begins exactly with the first video segment. */
function exactStart(sets: readonly XmlElement[], range: CutRange, hasVideo: boolean): CutRange {
  const set = sets.find((each) => !hasVideo || typeOf(each) === "video");
  const template = set && templatesOf(set)[0];
  if (!template) throw new ClipFault("the DASH manifest has no segment timelines");
  const line = readTimeline(template);
  const [first] = cutTimeline(line, range, "video").runs;
  return first ? { ...range, start: (first.start - line.offset) / line.timescale } : range;
}

/**
 * When the last segment of any track ends. A player that stopped within one would have to find the end by its clock:
 * dash.js does so ten times a second, and then shows a frame from half a second before.
 */
function exactEnd(sets: readonly XmlElement[], cut: Cut): number {
  const ends = sets.flatMap((set) =>
    templatesOf(set).flatMap((template) => {
      const line = readTimeline(template);
      const last = cutTimeline(line, cut, selectionOf(set, cut)).runs.at(-1);
      return last ? [(last.start + last.count * last.duration - line.offset) / line.timescale] : [];
    }),
  );
  return ends.reduce((latest, end) => Math.max(latest, end), cut.end);
}

const selectionOf = (set: XmlElement, { hasVideo }: Cut): Selection =>
  typeOf(set) === "audio" && hasVideo ? "audio" : "video";

export const templatesOf = (set: XmlElement): XmlElement[] => {
  const representations = set.children.filter(({ name }) => name === "Representation");
  return [set, ...representations].flatMap(({ children }) => children.filter(({ name }) => name === "SegmentTemplate"));
};

function cutSet(set: XmlElement, cut: Cut, part: Part): XmlElement {
  const type = typeOf(set);
  if (type !== "video" && type !== "audio")
    throw new ClipFault("the DASH manifest has other content than video and audio");
  const representations = set.children.filter(({ name }) => name === "Representation");
  // A template at both levels inherits attributes, and one without a timeline has no exact times.
  const isInherited = set.children.some(({ name }) => name === "SegmentTemplate");
  if (templatesOf(set).length !== (isInherited ? 1 : representations.length))
    throw new ClipFault("the DASH manifest has no segment timelines");
  const selection = selectionOf(set, cut);
  const inside = (element: XmlElement): XmlElement =>
    changed(element, {
      children: element.children.map((child) => {
        if (child.name === "SegmentTemplate") return cutTemplate(child, cut, { selection, part });
        return child.name === "Representation" ? inside(child) : child;
      }),
    });
  return inside(set);
}

function cutTemplate(
  template: XmlElement,
  range: CutRange,
  { selection, part }: { selection: Selection; part: Part },
): XmlElement {
  if (!template.attributes.get("media")?.includes("$Number"))
    throw new ClipFault("the segments of the DASH manifest are not numbered");
  const cut = partOf(cutTimeline(readTimeline(template), range, selection), part);
  return changed(template, {
    attributes: {
      startNumber: String(cut.number),
      endNumber: null,
      presentationTimeOffset: String(cut.offset + Math.round(range.start * cut.timescale)),
    },
    children: template.children.map((child) =>
      child.name === "SegmentTimeline" ? changed(child, { children: writeTimeline(cut) }) : child,
    ),
  });
}

function partOf(timeline: Timeline, part: Part): Timeline {
  const { runs, number } = timeline;
  const first = runs[0];
  const last = runs.at(-1);
  if (!first || !last) throw new ClipFault("a rendition has no segments in this range");
  if (part === "first") return { ...timeline, runs: [{ ...first, count: 1 }] };
  if (part === "all") return timeline;
  const before = runs.reduce((sum, { count }) => sum + count, -1);
  const start = last.start + (last.count - 1) * last.duration;
  return { ...timeline, number: number + before, runs: [{ ...last, start, count: 1 }] };
}
