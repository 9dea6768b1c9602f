import type { Span } from "./hls-read.ts";
import type { Sliced } from "./in-slices.ts";
import { resolveReference } from "./relative-reference.ts";
import type { XmlElement } from "./xml-read.ts";

/** `path` is below the root that the manifest's own path starts from. */
export type MpdReference = { where: string; path: string; span?: Span };
export type MpdFault = { where: string; code: string; message: string };
export type MpdContent = { references: MpdReference[]; faults: MpdFault[] };

const MAX_FAULTS = 20;
const MAX_REFERENCES = 500_000;
/** Of elements that send a player elsewhere, or to somebody who hands out keys. */
const UNSUPPORTED = new Set(["Location", "PatchLocation", "ContentSteering", "UTCTiming", "ContentProtection"]);
/** Rounding in encoders: a last segment shorter than this share of one is none. */
const NO_SEGMENT = 0.02;

type Template = { attributes: Map<string, string>; timeline: XmlElement | undefined; children: XmlElement[] };
type Level = { base: string; template?: Template; list?: XmlElement; single?: XmlElement };

class TooMany extends Error {}

/** All that a static DASH manifest at `path` refers to (ISO/IEC 23009-1, 5.3.9), and what is wrong with it in itself. */
export function* readMpd(root: XmlElement, path: string): Sliced<MpdContent> {
  const content: MpdContent = { references: [], faults: [] };
  const wrong = (where: string, code: string, message: string) => {
    if (content.faults.length < MAX_FAULTS) content.faults.push({ where, code, message });
  };
  if (root.name !== "MPD") {
    wrong(root.name, "manifest_malformed", "It is no MPD.");
    return content;
  }
  if (root.attributes.get("type") === "dynamic") wrong("MPD", "manifest_unsupported", "It is not static.");
  yield* refuseRemote(root, "MPD", wrong);
  const top = enter({ base: path }, root, "MPD", wrong);
  const periods = root.children.filter(({ name }) => name === "Period");
  if (periods.length === 0) wrong("MPD", "manifest_malformed", "It has no Period.");
  const total = seconds(root.attributes.get("mediaPresentationDuration"));
  let representations = 0;
  try {
    for (const [index, period] of periods.entries()) {
      const place = `MPD.Period[${index}]`;
      const start = seconds(period.attributes.get("start")) ?? 0;
      const following = seconds(periods[index + 1]?.attributes.get("start"));
      const rest = following ?? total;
      const length = seconds(period.attributes.get("duration")) ?? (rest === null ? null : rest - start);
      const inPeriod = enter(top, period, place, wrong);
      for (const [set, adaptation] of named(period, "AdaptationSet").entries()) {
        const inSet = enter(inPeriod, adaptation, `${place}.AdaptationSet[${set}]`, wrong);
        for (const [number, representation] of named(adaptation, "Representation").entries()) {
          const where = `${place}.AdaptationSet[${set}].Representation[${number}]`;
          representations++;
          yield* segmentsOf(enter(inSet, representation, where, wrong), representation, {
            where,
            length,
            content,
            wrong,
          });
        }
      }
    }
  } catch (error) {
    if (!(error instanceof TooMany)) throw error;
    wrong("MPD", "manifest_unsupported", `It names over ${MAX_REFERENCES} segments.`);
  }
  if (periods.length > 0 && representations === 0) wrong("MPD", "manifest_malformed", "It has no Representation.");
  return content;
}

type Wrong = (where: string, code: string, message: string) => void;
type Place = { where: string; length: number | null; content: MpdContent; wrong: Wrong };

const named = (element: XmlElement, name: string) => element.children.filter((child) => child.name === name);

function* refuseRemote(element: XmlElement, where: string, wrong: Wrong): Sliced<void> {
  yield;
  for (const attribute of element.attributes.keys())
    if (/^xlink:|:href$/i.test(attribute)) wrong(where, "reference_not_relative", `${attribute} is not taken.`);
  for (const child of element.children) {
    const place = `${where}.${child.name}`;
    if (child.name.includes(":") && /:include$/i.test(child.name))
      wrong(place, "manifest_unsupported", "Nothing is included.");
    if (UNSUPPORTED.has(child.name)) wrong(place, "manifest_unsupported", `${child.name} is not taken.`);
    yield* refuseRemote(child, place, wrong);
  }
}

/** What holds below `element`: its base, and how segments are named unless something further down says it otherwise. */
function enter(above: Level, element: XmlElement, where: string, wrong: Wrong): Level {
  const level = { ...above };
  const [base, another] = named(element, "BaseURL");
  if (another) wrong(where, "manifest_unsupported", "It has more than one BaseURL.");
  if (base) {
    const resolved = resolveReference(above.base, base.text.trim());
    if ("code" in resolved) wrong(`${where}.BaseURL`, resolved.code, resolved.message);
    else level.base = resolved.path;
  }
  const [template] = named(element, "SegmentTemplate");
  if (template) {
    level.template = {
      attributes: new Map([...(above.template?.attributes ?? []), ...template.attributes]),
      timeline: named(template, "SegmentTimeline")[0] ?? above.template?.timeline,
      children: [...(above.template?.children ?? []), ...template.children],
    };
  }
  const [list] = named(element, "SegmentList");
  if (list) level.list = list;
  const [single] = named(element, "SegmentBase");
  if (single) level.single = single;
  return level;
}

function* segmentsOf(level: Level, representation: XmlElement, place: Place): Sliced<void> {
  const { where, content, wrong } = place;
  let count = 0;
  const add = (uri: string | undefined, range?: string) => {
    const resolved = uri === undefined ? { path: level.base } : resolveReference(level.base, uri);
    if ("code" in resolved) return wrong(where, resolved.code, resolved.message);
    const [, start, end] = /^(\d{1,15})-(\d{1,15})$/.exec(range ?? "") ?? [];
    if (range !== undefined && (start === undefined || Number(start) > Number(end)))
      return wrong(where, "manifest_malformed", `${range.slice(0, 50)} is no byte range.`);
    if (content.references.length >= MAX_REFERENCES) throw new TooMany();
    const span = start === undefined ? undefined : { start: Number(start), end: Number(end) };
    content.references.push({ where, path: resolved.path, ...(span && { span }) });
  };
  const initialization = (element: XmlElement | undefined) => {
    if (element) add(element.attributes.get("sourceURL"), element.attributes.get("range"));
  };
  const { template, list, single } = level;
  if (template) {
    const { attributes } = template;
    const fill = (pattern: string, values: Record<string, number>) => expand(pattern, representation, values, place);
    const init = attributes.get("initialization");
    if (init !== undefined) add(fill(init, {}));
    initialization(template.children.find(({ name }) => name === "Initialization"));
    const pattern = attributes.get("media");
    if (pattern === undefined) return wrong(where, "manifest_malformed", "Its SegmentTemplate has no media.");
    const before = content.faults.length;
    for (const { number, time } of numbered(template, place)) {
      add(fill(pattern, { Number: number, Time: time }));
      if (++count % 100 === 0) yield;
    }
    if (count === 0 && content.faults.length === before) wrong(where, "manifest_malformed", "It has no segments.");
    return;
  }
  if (list) {
    initialization(named(list, "Initialization")[0]);
    for (const segment of named(list, "SegmentURL")) {
      add(segment.attributes.get("media"), segment.attributes.get("mediaRange"));
      if (++count % 100 === 0) yield;
    }
    if (count === 0) wrong(where, "manifest_malformed", "Its SegmentList is empty.");
    return;
  }
  if (single) {
    initialization(named(single, "Initialization")[0]);
    const index = single.attributes.get("indexRange");
    if (index !== undefined) add(undefined, index);
  }
  if (named(representation, "BaseURL").length === 0)
    return wrong(where, "manifest_malformed", "It says nowhere what its segments are.");
  add(undefined);
}

/** Number and time of every segment of a template: by its timeline, else by its duration. */
function* numbered({ attributes, timeline }: Template, { where, length, wrong }: Place) {
  const number = (name: string, otherwise: number) => {
    const value = attributes.get(name);
    return value === undefined || !/^\d{1,15}$/.test(value) ? otherwise : Number(value);
  };
  const timescale = number("timescale", 1) || 1;
  const first = number("startNumber", 1);
  if (!timeline) {
    const duration = number("duration", 0) / timescale;
    const last = number("endNumber", -1);
    if (duration <= 0 || (length === null && last < 0))
      return wrong(where, "manifest_malformed", "Nothing says how many segments it has.");
    const counted = last >= 0 ? last - first + 1 : Math.ceil((length as number) / duration - NO_SEGMENT);
    for (let index = 0; index < counted; index++) yield { number: first + index, time: index * number("duration", 0) };
    return;
  }
  const lines = named(timeline, "S");
  let [at, index] = [0, 0];
  for (const [position, line] of lines.entries()) {
    const value = (name: string) => {
      const given = line.attributes.get(name);
      return given !== undefined && /^-?\d{1,15}$/.test(given) ? Number(given) : null;
    };
    const duration = value("d") ?? 0;
    if (duration <= 0) return wrong(where, "manifest_malformed", "A segment of its timeline has no duration.");
    at = value("t") ?? at;
    const next = lines[position + 1]?.attributes.get("t");
    const offset = number("presentationTimeOffset", 0);
    const end = next !== undefined ? Number(next) : length === null ? null : offset + length * timescale;
    const repeat = value("r") ?? 0;
    if (repeat < 0 && end === null)
      return wrong(where, "manifest_malformed", "Nothing says how often a segment of its timeline is repeated.");
    const times = repeat >= 0 ? repeat + 1 : Math.ceil(((end as number) - at) / duration - NO_SEGMENT);
    for (let turn = 0; turn < times; turn++) {
      yield { number: first + index++, time: at };
      at += duration;
    }
  }
}

/** 5.3.9.4.4: $RepresentationID$, $Bandwidth$, $Number%05d$, $Time$, and $$ for a dollar. */
function expand(pattern: string, { attributes }: XmlElement, values: Record<string, number>, place: Place): string {
  const known: Record<string, string | number | undefined> = {
    ...values,
    RepresentationID: attributes.get("id"),
    Bandwidth: attributes.get("bandwidth"),
  };
  return pattern.replace(/\$([A-Za-z]*)(?:%0(\d{1,2})d)?\$/g, (whole, name: string, width: string | undefined) => {
    if (whole === "$$") return "$";
    const value = Object.hasOwn(known, name) ? known[name] : undefined;
    if (value === undefined) {
      place.wrong(place.where, "manifest_malformed", `${whole} is not known here.`);
      return "";
    }
    return width === undefined ? String(value) : String(value).padStart(Number(width), "0");
  });
}

/** An xs:duration of days and less, in seconds; null for none or another. */
function seconds(duration: string | undefined): number | null {
  const [match, days = 0, hours = 0, minutes = 0, rest = 0] =
    /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(duration ?? "") ?? [];
  return match === undefined
    ? null
    : Number(days) * 86_400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(rest);
}
