import { readXml, type XmlElement } from "#src/lib/xml/index.ts";

/** Reads the DASH manifest of a live stream, and checks it by the rules of ISO/IEC 23009-1 and the DASH-IF guidelines. */

export type ListedSegment = { number: number; url: string; startSeconds: number; durationSeconds: number };
export type ListedRepresentation = {
  id: string;
  kind: string;
  init: string;
  segments: ListedSegment[];
  /** What updates must not change. */
  fixed: Record<string, string | undefined>;
};
export type ListedPeriod = {
  id: string;
  startSeconds: number;
  representations: ListedRepresentation[];
};
export type ParsedManifest = {
  attributes: Record<string, string>;
  /** Absolute URLs. */
  location: string | null;
  clock: string | null;
  periods: ListedPeriod[];
};

/** `url`: where the manifest was read. Times of segments are on the timeline of the presentation. */
export function parseLiveManifest(text: string, url: string): ParsedManifest {
  const root = readXml(text);
  const base = new URL(textOf(root, "BaseURL") ?? "", url).href;
  const location = textOf(root, "Location");
  const clock = root.children.find(({ name }) => name === "UTCTiming")?.attributes.get("value");
  return {
    attributes: Object.fromEntries(root.attributes),
    location: location === undefined ? null : new URL(location, url).href,
    clock: clock === undefined ? null : new URL(clock, base).href,
    periods: named(root, "Period").map((period) => {
      const startSeconds = seconds(period.attributes.get("start")) ?? Number.NaN;
      return {
        id: period.attributes.get("id") ?? "",
        startSeconds,
        representations: named(period, "AdaptationSet").flatMap((set) =>
          named(set, "Representation").map((one) => readRepresentation(set, one, { base, startSeconds })),
        ),
      };
    }),
  };
}

function readRepresentation(
  set: XmlElement,
  one: XmlElement,
  { base, startSeconds }: { base: string; startSeconds: number },
): ListedRepresentation {
  const template = named(one, "SegmentTemplate")[0] as XmlElement;
  const of = (name: string) => template.attributes.get(name) as string;
  const id = one.attributes.get("id") as string;
  const timescale = Number(of("timescale"));
  const offset = Number(of("presentationTimeOffset") ?? 0);
  const urlOf = (name: string, number = 0) =>
    new URL(
      name.replace("$RepresentationID$", id).replace("$Number%05d$", () => String(number).padStart(5, "0")),
      base,
    ).href;
  let number = Number(of("startNumber"));
  let at = 0;
  const segments: ListedSegment[] = [];
  for (const s of named(named(template, "SegmentTimeline")[0] as XmlElement, "S")) {
    const duration = Number(s.attributes.get("d"));
    const repeats = Number(s.attributes.get("r") ?? 0);
    at = Number(s.attributes.get("t") ?? at);
    for (let each = 0; each <= repeats; each++, at += duration, number++)
      segments.push({
        number,
        url: urlOf(of("media"), number),
        durationSeconds: duration / timescale,
        startSeconds: startSeconds + (at - offset) / timescale,
      });
  }
  const fixed = Object.fromEntries([
    ...[...set.attributes].map(([name, value]) => [`set ${name}`, value]),
    ...one.attributes,
    ...[...template.attributes].filter(([name]) => name !== "startNumber"),
  ]);
  return { id, kind: set.attributes.get("contentType") ?? "", init: urlOf(of("initialization")), segments, fixed };
}

/** Audio is cut at packets. */
const PACKET_SECONDS = 0.03;

/** Checks the manifests of a stream, in the order in which a player reads them. */
export class LiveManifestValidator {
  #last: { parsed: ParsedManifest; text: string } | null = null;

  /** What is wrong with it, and with the change since the last one. */
  see(text: string, url: string): string[] {
    const parsed = parseLiveManifest(text, url);
    const faults = [...rules(parsed, text), ...(this.#last ? changes(this.#last, { parsed, text }) : [])];
    this.#last = { parsed, text };
    return faults;
  }
}

function* rules({ attributes, periods, clock }: ParsedManifest, text: string): Generator<string> {
  const isDynamic = attributes.type === "dynamic";
  if (attributes.profiles !== "urn:mpeg:dash:profile:isoff-live:2011") yield "profile";
  for (const name of ["availabilityStartTime", "publishTime", "minBufferTime", "maxSegmentDuration"])
    if (attributes[name] === undefined) yield `${name} is missing`;
  for (const name of ["minimumUpdatePeriod", "timeShiftBufferDepth", "suggestedPresentationDelay"])
    if ((attributes[name] !== undefined) !== isDynamic) yield `${name} is for dynamic manifests`;
  if ((attributes.mediaPresentationDuration !== undefined) === isDynamic) yield "duration is for static manifests";
  if ((clock !== null) !== isDynamic) yield "UTCTiming is for dynamic manifests";
  // The order of the schema.
  const order = [...text.matchAll(/^ {2}<(BaseURL|Location|Period|UTCTiming)/gm)].map(([, name]) => name as string);
  if (order.join() !== order.toSorted().join()) yield `order ${order}`;
  if (periods.length === 0) yield "no period";
  for (const [index, period] of periods.entries()) {
    const { startSeconds, representations } = period;
    const total = seconds(attributes.mediaPresentationDuration) ?? Number.POSITIVE_INFINITY;
    const end = periods[index + 1]?.startSeconds ?? total;
    for (const { id: name, segments } of representations) {
      let expected: number | null = null;
      for (const segment of segments) {
        const where = `${name} ${segment.number}`;
        if (expected !== null && Math.abs(segment.startSeconds - expected) > 0.001) yield `gap before ${where}`;
        expected = segment.startSeconds + segment.durationSeconds;
        if (segment.durationSeconds > (seconds(attributes.maxSegmentDuration) ?? 0)) yield `${where} is too long`;
        if (segment.startSeconds < startSeconds - PACKET_SECONDS) yield `${where} begins before its period`;
        if (expected > end + PACKET_SECONDS) yield `${where} ends after its period`;
      }
      if (segments.length === 0) yield `${name} is empty`;
    }
    // Players change between renditions anywhere in a period. Only the last one may grow.
    const isLast = index === periods.length - 1;
    const ends = representations.filter(({ kind }) => kind === "video").map(endOf);
    if (!(isLast && isDynamic) && Math.max(...ends) - Math.min(...ends) > 0.2)
      yield `${period.id} has shorter renditions`;
  }
}

/** ISO/IEC 23009-1, 5.4.1: an update repeats what it does not remove at the beginning or add at the end. */
function* changes(
  before: { parsed: ParsedManifest; text: string },
  after: { parsed: ParsedManifest; text: string },
): Generator<string> {
  const old = before.parsed.attributes;
  const now = after.parsed.attributes;
  if (old.availabilityStartTime !== now.availabilityStartTime) yield "availabilityStartTime has changed";
  const elapsed = Date.parse(now.publishTime as string) - Date.parse(old.publishTime as string);
  if (elapsed < 0 || (before.text !== after.text && elapsed === 0)) yield `publishTime advances by ${elapsed} ms`;
  if (old.type === "static" && now.type !== "static") yield "a static manifest has become dynamic";
  for (const period of after.parsed.periods) {
    const known = before.parsed.periods.find(({ id }) => id === period.id);
    if (!known) {
      const last = before.parsed.periods.at(-1);
      if (last && period.startSeconds <= last.startSeconds) yield `period ${period.id} is inserted`;
      continue;
    }
    if (known.startSeconds !== period.startSeconds) yield `period ${period.id} has moved`;
    for (const one of period.representations) {
      const earlier = known.representations.find(({ id }) => id === one.id);
      if (!earlier) yield `${one.id} was added to period ${period.id}`;
      else if (JSON.stringify(earlier.fixed) !== JSON.stringify(one.fixed)) yield `${one.id} has changed`;
      const listed = new Map(earlier?.segments.map((segment) => [segment.number, segment]));
      for (const segment of one.segments) {
        const same = listed.get(segment.number);
        if (same && JSON.stringify({ ...same, url: "" }) !== JSON.stringify({ ...segment, url: "" }))
          yield `segment ${segment.number} of ${one.id} has changed`;
      }
      const from = earlier?.segments.at(-1)?.number ?? 0;
      const to = one.segments.at(-1)?.number ?? 0;
      // A period that ends early continues in the next one (DASH-IF Interoperability Points 4.3, 4.3.3.3).
      const next = after.parsed.periods[after.parsed.periods.indexOf(period) + 1];
      const continued = next?.representations.find(({ id }) => id === one.id)?.segments;
      const isContinued = continued?.[0]?.number === to + 1 && (continued.at(-1)?.number ?? 0) >= from;
      if (to < from && !isContinued) yield `${one.id} has lost its last segment`;
    }
  }
}

const endOf = ({ segments }: ListedRepresentation) => {
  const last = segments.at(-1);
  return last ? last.startSeconds + last.durationSeconds : 0;
};

const named = (element: XmlElement, name: string) => element.children.filter((child) => child.name === name);

const textOf = (element: XmlElement, name: string) => named(element, name)[0]?.text.trim();

/** xs:duration of seconds alone. */
export function seconds(duration: string | undefined): number | null {
  const [, number] = /^PT(\d+(?:\.\d+)?)S$/.exec(duration ?? "") ?? [];
  return number === undefined ? null : Number(number);
}
