import {
  changed,
  parsed,
  readMpd,
  readTimeline,
  type Timeline,
  templatesOf,
  typeOf,
  writeTimeline,
  writeXml,
} from "#lib/manifests";
import type { XmlElement } from "#lib/xml";
import type { RenditionCut } from "./cut-rendition.ts";
import { ClipImpossible } from "./impossible.ts";

/** The cut of the rendition that has a segment. */
type CutOf = (segmentPath: string) => { cut: RenditionCut; count: number } | undefined;

const MAX_REFERENCES = 10_000;

/**
 * A DASH manifest at `path`, cut to whole segments by `cutMpd`; its first and last segments are replaced by the clip's own. Throws
 * ClipImpossible when it has other segments than the HLS playlists.
 */
export function exactMpd(text: string, path: string, range: { start: number; end: number }, cutOf: CutOf): string {
  const root = parsed(text);
  const period = root.children.find(({ name }) => name === "Period");
  if (!period) throw new ClipImpossible("its DASH manifest has no period");
  let end = range.end;
  const inPeriod = (sets: XmlElement[]) =>
    changed(root, {
      children: root.children.map((one) => (one === period ? changed(period, { children: sets }) : one)),
    });
  const bases = period.children.filter(({ name }) => name === "BaseURL");

  /** The cut of the first representation of a set or of one of it: the other ones of a common template have the same. */
  const cutFor = (set: XmlElement, representation: XmlElement): { cut: RenditionCut; count: number } => {
    const only = changed(set, {
      children: set.children.filter((child) => child.name !== "Representation" || child === representation),
    });
    const { references } = readMpd(inPeriod([...bases, only]), path, MAX_REFERENCES);
    const found = references.map((one) => cutOf(one.path)).find((one) => one !== undefined);
    return found ?? impossible();
  };
  const exactTemplate = (template: XmlElement, { cut, count }: { cut: RenditionCut; count: number }): XmlElement => {
    const timeline = readTimeline(template);
    if (timeline.runs.reduce((sum, run) => sum + run.count, 0) !== count) return impossible();
    const exact = exactTimeline(timeline, cut);
    const last = exact.runs.at(-1) as Timeline["runs"][number];
    // The offset of the whole segments is when the first of the video begins.
    const offset = timeline.offset + Math.round(range.start * timeline.timescale);
    end = Math.max(end, range.start + (last.start + last.count * last.duration - offset) / timeline.timescale);
    return changed(template, {
      attributes: { startNumber: String(exact.number), presentationTimeOffset: String(offset) },
      children: template.children.map((child) =>
        child.name === "SegmentTimeline" ? changed(child, { children: writeTimeline(exact) }) : child,
      ),
    });
  };
  const exactSet = (set: XmlElement): XmlElement => {
    const representations = set.children.filter(({ name }) => name === "Representation");
    const [first] = representations;
    if (!first || !["video", "audio"].includes(typeOf(set)) || templatesOf(set).length === 0) return impossible();
    const inside = (element: XmlElement, representation: XmlElement): XmlElement =>
      changed(element, {
        children: element.children.map((child) => {
          if (child.name === "SegmentTemplate") return exactTemplate(child, cutFor(set, representation));
          return child.name === "Representation" ? inside(child, child) : child;
        }),
      });
    return inside(set, first);
  };
  const sets = period.children.map((child) => (child.name === "AdaptationSet" ? exactSet(child) : child));
  // Rounded up, so that no packet ends after it.
  const duration = `PT${Math.ceil((end - range.start) * 1000 - 1e-3) / 1000}S`;
  return writeXml(
    changed(root, {
      attributes: { mediaPresentationDuration: duration },
      children: root.children.map((child) =>
        child === period ? changed(period, { attributes: { duration }, children: sets }) : child,
      ),
    }),
  );
}

const impossible = (): never => {
  throw new ClipImpossible("its DASH manifest has other segments than its HLS playlists");
};

/** Own segments take the place of those that they replace; the number of the first is that of the last one replaced. */
function exactTimeline({ timescale, offset, number, runs }: Timeline, cut: RenditionCut): Timeline {
  const all = runs.flatMap(({ start, duration, count }) =>
    Array.from({ length: count }, (_, index) => ({ start: start + index * duration, duration })),
  );
  const exact: Timeline["runs"] = [];
  const scaled = (ticks: number) => Math.round((ticks * timescale) / cut.timescale);
  const add = (start: number, duration: number) => {
    const last = exact.at(-1);
    if (last && last.duration === duration && last.start + last.count * duration === start) last.count++;
    else exact.push({ start, duration, count: 1 });
  };
  const head = cut.own.find(({ from }) => from === cut.first);
  for (let index = cut.first; index < cut.end; ) {
    const own = cut.own.find(({ from }) => from === index);
    const one = all[index] as (typeof all)[number];
    if (own) add(one.start + scaled(own.skipped), scaled(own.duration));
    else add(one.start, one.duration);
    index = own?.to ?? index + 1;
  }
  return { timescale, offset, number: number + (head ? head.to - 1 : cut.first), runs: exact };
}
