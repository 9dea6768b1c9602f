import { DOCUMENT_LIMITS, requireAtMost } from "#lib/base";
import type { XmlElement } from "#lib/xml";
import { type NeededObject, NeededObjects } from "./needed-objects.ts";
import { resolveReference } from "./relative-reference.ts";

export type MpdFault = { where: string; code: string; message: string };
/** Paths are relative to the root of the manifest's own path. */
export type MpdContent = { references: NeededObject[]; faults: MpdFault[] };

/** Elements that redirect a player, or refer to a key server. */
const UNSUPPORTED = new Set(["Location", "PatchLocation", "ContentSteering", "UTCTiming", "ContentProtection"]);
const TEMPLATE_ATTRIBUTES =
  "media initialization timescale startNumber endNumber duration presentationTimeOffset".split(" ");
/** Tolerates encoder rounding: a last segment shorter than this share of one is ignored. */
const NO_SEGMENT = 0.02;

type Template = {
  attributes: ReadonlyMap<string, string>;
  /** Its S elements. */
  timeline: readonly XmlElement[] | undefined;
  initialization: XmlElement | undefined;
};
type List = { initialization: XmlElement | undefined; segments: readonly XmlElement[] };
type Level = { base: string; template?: Template; list?: List; single?: XmlElement };

/** Stops reading a manifest after the maximum number of faults. */
class EnoughFaults extends Error {}

/**
 * All references of a static DASH manifest at `path` (ISO/IEC 23009-1, 5.3.9), each once, and its faults; references
 * beyond `stored` objects plus a hundred are left out. Linear in the expanded manifest, which is bounded; stops after a
 * fixed number of faults. Throws TooComplex.
 */
export function readMpd(root: XmlElement, path: string, stored: number): MpdContent {
  const content = new Content();
  try {
    read(root, path, content);
  } catch (error) {
    if (!(error instanceof EnoughFaults)) throw error;
  }
  return { references: content.references.list(stored), faults: content.faults };
}

/** Bounded result of the reading so far. */
class Content {
  readonly references = new NeededObjects();
  readonly faults: MpdFault[] = [];
  #segments = 0;
  #characters = 0;

  readonly wrong: Wrong = (where, code, message) => {
    this.faults.push({ where, code, message });
    if (this.faults.length >= DOCUMENT_LIMITS.faults) throw new EnoughFaults();
  };

  /** Called for each segment before its reference is resolved, so that refused ones count too. */
  countSegment(characters: number): void {
    requireAtMost(++this.#segments, DOCUMENT_LIMITS.mpdSegments, "segments");
    this.countCharacters(characters);
  }

  /** Length of a template or reference that is read. */
  countCharacters(characters: number): void {
    this.#characters += characters;
    requireAtMost(this.#characters, DOCUMENT_LIMITS.mpdPathCharacters, "characters in its references");
  }
}

function read(root: XmlElement, path: string, content: Content): void {
  const { wrong } = content;
  if (root.name !== "MPD") {
    return wrong(root.name.slice(0, 50), "manifest_malformed", "The root element is not MPD.");
  }
  if (root.attributes.get("type") === "dynamic")
    wrong("MPD", "manifest_unsupported", "The type is dynamic; only static manifests can be imported.");
  refuseRemote(root, "MPD", wrong);
  const top = enter({ base: path }, root, "MPD", content);
  const periods = root.children.filter(({ name }) => name === "Period");
  if (periods.length === 0) wrong("MPD", "manifest_malformed", "The MPD has no Period.");
  const total = seconds(root.attributes.get("mediaPresentationDuration"));
  let representations = 0;
  for (const [index, period] of periods.entries()) {
    const path = `MPD.Period[${index}]`;
    const start = seconds(period.attributes.get("start")) ?? 0;
    const following = seconds(periods[index + 1]?.attributes.get("start"));
    const rest = following ?? total;
    const length = seconds(period.attributes.get("duration")) ?? (rest === null ? null : rest - start);
    const inPeriod = enter(top, period, path, content);
    for (const [set, adaptation] of named(period, "AdaptationSet").entries()) {
      const inSet = enter(inPeriod, adaptation, `${path}.AdaptationSet[${set}]`, content);
      for (const [number, representation] of named(adaptation, "Representation").entries()) {
        const where = `${path}.AdaptationSet[${set}].Representation[${number}]`;
        representations++;
        segmentsOf(enter(inSet, representation, where, content), representation, { where, length, content, wrong });
      }
    }
  }
  if (periods.length > 0 && representations === 0) wrong("MPD", "manifest_malformed", "The MPD has no Representation.");
}

type Wrong = (where: string, code: string, message: string) => void;
type TemplatePosition = { where: string; length: number | null; content: Content; wrong: Wrong };

const named = (element: XmlElement, name: string) => element.children.filter((child) => child.name === name);

/** Recursion is bounded by the depth of the document. */
function refuseRemote(element: XmlElement, where: string, wrong: Wrong): void {
  for (const attribute of element.attributes.keys())
    if (/^xlink:|:href$/i.test(attribute))
      wrong(
        where,
        "reference_not_relative",
        `${attribute.slice(0, 50)} is a reference to another document, which is not supported.`,
      );
  for (const child of element.children) {
    const path = `${where}.${child.name.slice(0, 50)}`;
    if (child.name.includes(":") && /:include$/i.test(child.name))
      wrong(path, "manifest_unsupported", "xi:include is not supported.");
    if (UNSUPPORTED.has(child.name)) wrong(path, "manifest_unsupported", `${child.name} is not supported.`);
    refuseRemote(child, path, wrong);
  }
}

/** Inherited below `element`: its base URL, and the segment naming unless a descendant overrides it. */
function enter(above: Level, element: XmlElement, where: string, content: Content): Level {
  const { wrong } = content;
  const level = { ...above };
  const [base, another] = named(element, "BaseURL");
  if (another) wrong(where, "manifest_unsupported", "More than one BaseURL; expected at most one.");
  if (base) {
    const reference = base.text.trim();
    content.countCharacters(above.base.length + reference.length);
    const resolved = resolveReference(above.base, reference);
    if ("code" in resolved) wrong(`${where}.BaseURL`, resolved.code, resolved.message);
    else level.base = resolved.path;
  }
  const [template] = named(element, "SegmentTemplate");
  if (template) {
    const [timeline] = named(template, "SegmentTimeline");
    level.template = {
      attributes: inherited(above.template?.attributes, template.attributes),
      timeline: timeline ? named(timeline, "S") : above.template?.timeline,
      initialization: above.template?.initialization ?? named(template, "Initialization")[0],
    };
  }
  const [list] = named(element, "SegmentList");
  if (list) level.list = { initialization: named(list, "Initialization")[0], segments: named(list, "SegmentURL") };
  const [single] = named(element, "SegmentBase");
  if (single) level.single = single;
  return level;
}

/** The relevant attributes of a SegmentTemplate, each from the nearest level. */
function inherited(above: Template["attributes"] | undefined, own: Template["attributes"]): Template["attributes"] {
  const attributes = new Map<string, string>();
  for (const name of TEMPLATE_ATTRIBUTES) {
    const value = own.get(name) ?? above?.get(name);
    if (value !== undefined) attributes.set(name, value);
  }
  return attributes;
}

function segmentsOf(level: Level, representation: XmlElement, place: TemplatePosition): void {
  const { where, content, wrong } = place;
  let count = 0;
  const add = (uri: string | undefined, range?: string) => {
    content.countSegment(level.base.length + (uri?.length ?? 0));
    const resolved = uri === undefined ? { path: level.base } : resolveReference(level.base, uri);
    if ("code" in resolved) return wrong(where, resolved.code, resolved.message);
    const [, start, end] = /^(\d{1,15})-(\d{1,15})$/.exec(range ?? "") ?? [];
    if (range !== undefined && (start === undefined || Number(start) > Number(end)))
      return wrong(where, "manifest_malformed", `${range.slice(0, 50)} is not a byte range; expected FIRST-LAST.`);
    const span = start === undefined ? undefined : { start: Number(start), end: Number(end) };
    content.references.add({ path: resolved.path, ...(span && { span }) });
  };
  const initialization = (element: XmlElement | undefined) => {
    if (element) add(element.attributes.get("sourceURL"), element.attributes.get("range"));
  };
  const { template, list, single } = level;
  if (template) {
    const { attributes } = template;
    const init = attributes.get("initialization");
    if (init !== undefined) add(compiled(init, representation, INITIALIZATION, place)(INITIALIZATION));
    initialization(template.initialization);
    const pattern = attributes.get("media");
    if (pattern === undefined) return wrong(where, "manifest_malformed", "The SegmentTemplate has no media attribute.");
    const before = content.faults.length;
    const fill = compiled(pattern, representation, SEGMENT, place);
    for (const { number, time } of numbered(template, place)) {
      // A template may be far longer than its expansion.
      content.countCharacters(pattern.length);
      add(fill({ Number: number, Time: time }));
      count++;
    }
    if (count === 0 && content.faults.length === before)
      wrong(where, "manifest_malformed", "The SegmentTemplate has no segments.");
    return;
  }
  if (list) {
    initialization(list.initialization);
    for (const segment of list.segments) {
      add(segment.attributes.get("media"), segment.attributes.get("mediaRange"));
      count++;
    }
    if (count === 0) wrong(where, "manifest_malformed", "The SegmentList is empty.");
    return;
  }
  if (single) {
    initialization(named(single, "Initialization")[0]);
    const index = single.attributes.get("indexRange");
    if (index !== undefined) add(undefined, index);
  }
  if (named(representation, "BaseURL").length === 0)
    return wrong(where, "manifest_malformed", "The Representation has no SegmentTemplate, SegmentList or BaseURL.");
  add(undefined);
}

/**
 * Number and time of every segment of a template: by its timeline, else by its duration. There may be 10^15 of them, so
 * the caller limits the iteration.
 */
function* numbered({ attributes, timeline }: Template, { where, length, wrong }: TemplatePosition) {
  const number = (name: string, otherwise: number) => {
    const value = attributes.get(name);
    return value === undefined || !/^\d{1,15}$/.test(value) ? otherwise : Number(value);
  };
  const timescale = number("timescale", 1) || 1;
  const first = number("startNumber", 1);
  if (!timeline) {
    const ticks = number("duration", 0);
    const duration = ticks / timescale;
    const last = number("endNumber", -1);
    if (duration <= 0 || (length === null && last < 0))
      return wrong(
        where,
        "manifest_malformed",
        "The number of segments is unknown; expected a duration, an endNumber or a SegmentTimeline.",
      );
    const counted = last >= 0 ? last - first + 1 : Math.ceil((length as number) / duration - NO_SEGMENT);
    for (let index = 0; index < counted; index++) yield { number: first + index, time: index * ticks };
    return;
  }
  const offset = number("presentationTimeOffset", 0);
  let at = 0;
  let index = 0;
  for (const [position, line] of timeline.entries()) {
    const value = (name: string) => {
      const text = line.attributes.get(name);
      return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : null;
    };
    const duration = value("d") ?? 0;
    if (duration <= 0)
      return wrong(where, "manifest_malformed", "A segment of the SegmentTimeline has no duration (d).");
    at = value("t") ?? at;
    const next = timeline[position + 1]?.attributes.get("t");
    const end = next !== undefined ? Number(next) : length === null ? null : offset + length * timescale;
    const repeat = value("r") ?? 0;
    if (repeat < 0 && end === null)
      return wrong(
        where,
        "manifest_malformed",
        "A segment of the SegmentTimeline has a negative r, but nothing ends it; expected a number of repeats.",
      );
    const times = repeat >= 0 ? repeat + 1 : Math.ceil(((end as number) - at) / duration - NO_SEGMENT);
    for (let repetition = 0; repetition < times; repetition++) {
      yield { number: first + index++, time: at };
      at += duration;
    }
  }
}

type Values = { Number?: number; Time?: number };
/** The identifiers that are known where a template is expanded. */
const INITIALIZATION: Values = {};
const SEGMENT: Values = { Number: 0, Time: 0 };

/**
 * A template, parsed once for all segments (5.3.9.4.4): $RepresentationID$, $Bandwidth$, $Number%05d$, $Time$, and $$
 * for a dollar. An identifier that is not in `known` is a fault, and expands to nothing.
 */
function compiled(
  pattern: string,
  { attributes }: XmlElement,
  known: Values,
  place: TemplatePosition,
): (values: Values) => string {
  place.content.countCharacters(pattern.length);
  const fixed: Record<string, string | undefined> = {
    RepresentationID: attributes.get("id"),
    Bandwidth: attributes.get("bandwidth"),
  };
  const parts: (string | ((values: Values) => string))[] = [];
  let done = 0;
  for (const match of pattern.matchAll(/\$([A-Za-z]*)(?:%0(\d{1,2})d)?\$/g)) {
    const [whole, name = "", width] = match;
    const padded = (value: string | number) => String(value).padStart(Number(width ?? 0), "0");
    parts.push(pattern.slice(done, match.index));
    done = match.index + whole.length;
    const value = Object.hasOwn(fixed, name) ? fixed[name] : undefined;
    if (whole === "$$") parts.push("$");
    else if (value !== undefined) parts.push(padded(value));
    else if (Object.hasOwn(known, name)) parts.push((values) => padded(values[name as keyof Values] as number));
    else
      place.wrong(place.where, "manifest_malformed", `${whole.slice(0, 50)} is not a known identifier of a template.`);
  }
  parts.push(pattern.slice(done));
  return (values) => parts.map((part) => (typeof part === "string" ? part : part(values))).join("");
}

/** An xs:duration of days and smaller units, in seconds; null when missing or of another form. */
function seconds(duration: string | undefined): number | null {
  const [match, days = 0, hours = 0, minutes = 0, rest = 0] =
    /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(duration ?? "") ?? [];
  return match === undefined
    ? null
    : Number(days) * 86_400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(rest);
}
