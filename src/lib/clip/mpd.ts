import { DOCUMENT_LIMITS, requireAtMost } from "../document-limits.ts";
import { readMpd } from "../mpd-read.ts";
import { isShared, type SharedMedia } from "../shared-media.ts";
import { readXml, type XmlElement } from "../xml-read.ts";
import { XmlFault } from "../xml-tokens.ts";
import { writeXml } from "../xml-write.ts";
import { ClipFault } from "./fault.ts";
import { isSelected, type Selection, type TimeRange } from "./range.ts";

type Segment = { start: number; duration: number };
type Timeline = { timescale: number; offset: number; number: number; segments: Segment[] };
type Cut = TimeRange & { hasVideo: boolean };

/**
 * A DASH manifest at `path`, cut to the range of the clip: its presentation begins at 0. Sheets of thumbnails are left
 * out, because a range of them cannot be described; players have the storyboard. Throws ClipFault when it is not a
 * single period with segment timelines, or refers to objects that the clip's playlists do not, and TooComplex.
 */
export function cutMpd(text: string, path: string, range: TimeRange, shared: SharedMedia): string {
  const root = parsed(text);
  const periods = root.children.filter(({ name }) => name === "Period");
  const [period] = periods;
  if (root.name !== "MPD" || root.attributes.get("type") === "dynamic" || !period || periods.length > 1)
    throw new ClipFault("the DASH manifest is not a static one with a single period");
  const sets = period.children.filter((child) => child.name === "AdaptationSet" && typeOf(child) !== "image");
  const hasVideo = sets.some((set) => typeOf(set) === "video");
  const cut = { ...exactStart(sets, range, hasVideo), hasVideo };
  const duration = `PT${Number((cut.end - cut.start).toFixed(3))}S`;
  const written = changed(root, {
    attributes: { mediaPresentationDuration: duration },
    children: root.children.flatMap((child) => {
      if (child !== period) return ["BaseURL", "ProgramInformation"].includes(child.name) ? [child] : [];
      const bases = period.children.filter(({ name }) => name === "BaseURL");
      const children = [...bases, ...sets.map((set) => cutSet(set, cut))];
      return [changed(period, { attributes: { start: "PT0S", duration }, children })];
    }),
  });
  const { references, faults } = readMpd(written, path, DOCUMENT_LIMITS.mpdSegments);
  if (faults.length > 0) throw new ClipFault("the DASH manifest is malformed");
  if (references.some((one) => one.span !== undefined || !isShared(shared, one.path)))
    throw new ClipFault("the DASH manifest refers to other segments than the HLS playlists");
  return writeXml(written);
}

function parsed(text: string): XmlElement {
  try {
    return readXml(text);
  } catch (error) {
    if (error instanceof XmlFault) throw new ClipFault("the DASH manifest is malformed");
    throw error;
  }
}

type Change = { attributes?: Record<string, string | null>; children?: XmlElement[] };

/** A copy. An attribute that is null is removed. */
function changed(element: XmlElement, { attributes = {}, children = element.children }: Change): XmlElement {
  const all = new Map(element.attributes);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) all.delete(name);
    else all.set(name, value);
  }
  return { ...element, attributes: all, children };
}

/** The first part of the media type, of the set or its first representation. */
function typeOf(set: XmlElement): string {
  const representation = set.children.find(({ name }) => name === "Representation");
  const type = set.attributes.get("contentType") ?? set.attributes.get("mimeType");
  return (type ?? representation?.attributes.get("mimeType") ?? "").split("/")[0] as string;
}

/** The times of the playlists are rounded: the clip begins exactly with the first video segment. */
function exactStart(sets: readonly XmlElement[], range: TimeRange, hasVideo: boolean): TimeRange {
  const set = sets.find((each) => !hasVideo || typeOf(each) === "video");
  const template = set && templatesOf(set)[0];
  if (!template) throw new ClipFault("the DASH manifest has no segment timelines");
  const line = readTimeline(template);
  const first = selected(line, range, "video")[0];
  return first ? { ...range, start: (first.start - line.offset) / line.timescale } : range;
}

const templatesOf = (set: XmlElement): XmlElement[] => {
  const representations = set.children.filter(({ name }) => name === "Representation");
  return [set, ...representations].flatMap(({ children }) => children.filter(({ name }) => name === "SegmentTemplate"));
};

function cutSet(set: XmlElement, cut: Cut): XmlElement {
  const type = typeOf(set);
  if (type !== "video" && type !== "audio") throw new ClipFault("the DASH manifest has other content than video and audio");
  const representations = set.children.filter(({ name }) => name === "Representation");
  // A template at both levels inherits attributes, and one without a timeline has no exact times.
  const isInherited = set.children.some(({ name }) => name === "SegmentTemplate");
  if (templatesOf(set).length !== (isInherited ? 1 : representations.length))
    throw new ClipFault("the DASH manifest has no segment timelines");
  const selection = type === "audio" && cut.hasVideo ? "audio" : "video";
  const inside = (element: XmlElement): XmlElement =>
    changed(element, {
      children: element.children.map((child) => {
        if (child.name === "SegmentTemplate") return cutTemplate(child, cut, selection);
        return child.name === "Representation" ? inside(child) : child;
      }),
    });
  return inside(set);
}

function cutTemplate(template: XmlElement, range: TimeRange, selection: Selection): XmlElement {
  const line = readTimeline(template);
  const segments = selected(line, range, selection);
  const [first] = segments;
  if (!first) throw new ClipFault("a rendition has no segments in this range");
  return changed(template, {
    attributes: {
      startNumber: String(line.number + line.segments.indexOf(first)),
      endNumber: null,
      presentationTimeOffset: String(line.offset + Math.round(range.start * line.timescale)),
    },
    children: template.children.map((child) =>
      child.name === "SegmentTimeline" ? changed(child, { children: timelineOf(segments) }) : child,
    ),
  });
}

const selected = ({ timescale, offset, segments }: Timeline, range: TimeRange, selection: Selection): Segment[] =>
  segments.filter(({ start, duration }) => {
    const seconds = { start: (start - offset) / timescale, end: (start + duration - offset) / timescale };
    return isSelected(seconds, range, selection);
  });

/** ISO/IEC 23009-1, 5.3.9.6: times in units of the timescale. */
function readTimeline(template: XmlElement): Timeline {
  const line = template.children.find(({ name }) => name === "SegmentTimeline");
  if (!line) throw new ClipFault("the DASH manifest has no segment timelines");
  const segments: Segment[] = [];
  let at = 0;
  for (const each of line.children) {
    const duration = numberOf(each, "d", 0);
    at = numberOf(each, "t", at);
    if (each.name !== "S" || duration === 0) throw new ClipFault("a DASH segment timeline is malformed");
    const repeat = numberOf(each, "r", 0);
    requireAtMost(segments.length + repeat + 1, DOCUMENT_LIMITS.mpdSegments, "segments");
    for (let index = 0; index <= repeat; index++, at += duration) segments.push({ start: at, duration });
  }
  const timescale = numberOf(template, "timescale", 1) || 1;
  return { timescale, offset: numberOf(template, "presentationTimeOffset", 0), number: numberOf(template, "startNumber", 1), segments };
}

/** A negative number of repeats, up to the end of the period, is refused like text. */
function numberOf({ attributes }: XmlElement, name: string, otherwise: number): number {
  const value = attributes.get(name);
  if (value === undefined) return otherwise;
  if (!/^\d{1,15}$/.test(value)) throw new ClipFault("a DASH segment timeline is malformed");
  return Number(value);
}

/** Equal durations in a row are one element. */
function timelineOf(segments: readonly Segment[]): XmlElement[] {
  const runs: (Segment & { repeat: number; end: number })[] = [];
  for (const { start, duration } of segments) {
    const last = runs.at(-1);
    if (last && last.duration === duration && last.end === start) {
      last.repeat++;
      last.end += duration;
    } else runs.push({ start, duration, repeat: 0, end: start + duration });
  }
  return runs.map(({ start, duration, repeat }) => ({
    name: "S",
    attributes: new Map([
      ["t", String(start)],
      ["d", String(duration)],
      ...(repeat > 0 ? [["r", String(repeat)] as const] : []),
    ]),
    children: [],
    text: "",
  }));
}
