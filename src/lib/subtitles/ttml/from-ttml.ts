import { canonicalLanguage, DOCUMENT_LIMITS, requireAtMost, type Sliced, TooComplex } from "#lib/base";
import { XmlFault, xmlTokens } from "#lib/xml";
import type { Fault } from "../vtt/parse.ts";
import type { SkippedCue } from "../vtt/skipped.ts";
import { type PlainCue, writeCue } from "../vtt/write.ts";
import { type Root, rootOf, settingsOf } from "./position.ts";
import { elementsOf, inherited, type Style, Stylesheet, tagsOf } from "./styles.ts";
import { payloadOf, type Run } from "./text.ts";
import { TtmlClock } from "./times.ts";
import { readTree, type TtmlElement, TtmlFault } from "./tree.ts";

export type ConvertedTtml = { text: string; faults: Fault[]; skipped: SkippedCue[] };

/** Detects TTML, whatever the file is called: XML, which is neither WebVTT nor SubRip. */
export const looksLikeTtml = (source: string) => /^\s*<(?:\?xml\s|!|[A-Za-z_])/.test(source);

/**
 * Converts TTML 1 and 2, IMSC (text profile) and DFXP to WebVTT: nested times of all forms, line breaks, bold, italic,
 * underlined and ruby text, languages, alignment, and the place of a region as far as WebVTT has a counterpart. Other
 * styles are dropped. `skipped` are paragraphs that cannot be shown, images among them. Cues are sorted by start, as
 * WebVTT (4.1) requires. Linear in time. Throws TooComplex.
 */
export function* fromTtml(source: string): Sliced<ConvertedTtml> {
  const { cues, faults, skipped } = yield* cuesOfTtml(source);
  return { text: cues ? `${["WEBVTT", ...cues.map(writeCue)].join("\n\n")}\n` : "", faults, skipped };
}

type TtmlCues = { cues: PlainCue[] | null; faults: Fault[]; skipped: SkippedCue[] };

/** As above, as cues; null for what is no TTML. `endSeconds`: where the document ends, unless it has no end. */
export function* cuesOfTtml(source: string, endSeconds = Number.POSITIVE_INFINITY): Sliced<TtmlCues> {
  try {
    const root = yield* readTree(source);
    const converter = new Converter(root);
    yield* converter.convert(root, endSeconds);
    const { cues, faults, skipped } = converter;
    cues.sort((one, other) => one.startMs - other.startMs);
    return { cues, faults, skipped };
  } catch (error) {
    if (!(error instanceof TtmlFault)) throw error;
    return { cues: null, faults: [{ line: error.line, message: error.message }], skipped: [] };
  }
}

/** The canonical `xml:lang` of a TTML document; null for none, and for another document. Reads no more than its root. */
export function languageOfTtml(source: string): string | null {
  try {
    for (const token of xmlTokens(source))
      if (token.kind === "open")
        return /^(?:.{1,50}:)?tt$/.test(token.name) ? canonicalLanguage(token.attributes.get("xml:lang") ?? "") : null;
  } catch (error) {
    if (!(error instanceof XmlFault || error instanceof TooComplex)) throw error;
  }
  return null;
}

/** Seconds; `end` is infinite where nothing ends it. */
type Interval = { begin: number; end: number };
/** A run of a paragraph, and when it is shown. */
type Leaf = Interval & Run;
/** What children inherit. */
type Context = { style: Style; region: Style; language: string | null; isPreserved: boolean };
/** The times within which an element is: `from` is what its own times relate to. */
type Outer = { from: number; end: number; isSequence: boolean };

const TIMED = new Set(["body", "div", "p", "span", "br"]);
/** Runs that are read for all the times of the paragraphs of a document. */
const MAX_TIMED_RUNS = 1_000_000;
/** More languages than a document has; each costs a look into the names of the runtime. */
const MAX_LANGUAGES = 100;

class Converter {
  readonly cues: PlainCue[] = [];
  readonly faults: Fault[] = [];
  readonly skipped: SkippedCue[] = [];
  readonly #language: string | null;
  readonly #clock: TtmlClock;
  readonly #root: Root;
  readonly #styles: Stylesheet;
  readonly #languages = new Map<string, string | null>();
  /** Leaves of the paragraph that is being read. */
  #leaves: Leaf[] | null = null;
  /** Leaves of the document that are not only white space. */
  #spokenLeaves = 0;
  #timedRuns = 0;
  #characters = 0;

  constructor(tt: TtmlElement) {
    this.#clock = new TtmlClock(tt);
    this.#root = rootOf(tt);
    this.#styles = new Stylesheet(elementsOf(tt).find(({ name }) => name === "head"));
    this.#language = this.#languageOf(tt, null);
  }

  *convert(tt: TtmlElement, end: number): Sliced<void> {
    const context = {
      style: {},
      region: {},
      language: this.#language,
      isPreserved: tt.attributes.get("xml:space") === "preserve",
    };
    const outer = { from: 0, end, isSequence: false };
    for (const body of elementsOf(tt)) if (body.name === "body") yield* this.#visit(body, context, outer);
  }

  /**
   * Reads an element and what it contains. Returns its end. One without times in which nothing is to be read lasts as
   * long as the element around it, which it does not prolong: outside a sequence it returns the begin of that one.
   */
  *#visit(element: TtmlElement, context: Context, outer: Outer): Sliced<number> {
    const interval = this.#intervalOf(element, outer);
    const spokenBefore = this.#spokenLeaves;
    if (element.name === "p") yield;
    const end = yield* this.#visitWithin(element, context, outer, interval);
    const isSilent = this.#spokenLeaves === spokenBefore && !interval?.isExplicit;
    return isSilent && !outer.isSequence ? outer.from : end;
  }

  *#visitWithin(element: TtmlElement, context: Context, outer: Outer, interval: ActiveInterval | null): Sliced<number> {
    const inner = this.#contextOf(element, context);
    const style = { ...inner.style, ...this.#styles.specified(element) };
    if (style["tts:display"] === "none" || style["tts:ruby"] === "delimiter") return interval?.end ?? outer.from;
    if (hasImage(element)) this.#skip(element.line, "image");
    // A fault was recorded; its texts are of no cue.
    if (!interval) return outer.from;
    if (element.name === "br") {
      this.#addLeaf("\n", style, inner, interval);
      return interval.end;
    }
    const isParagraph = element.name === "p";
    if (isParagraph) this.#leaves = [];
    const firstLeaf = this.#leaves?.length ?? 0;
    const end = yield* this.#visitChildren(element, { style, inner, interval, outer });
    for (const leaf of this.#leaves?.slice(firstLeaf) ?? []) leaf.end = Math.min(leaf.end, end);
    if (isParagraph) {
      this.#endParagraph(element, style, inner, { begin: interval.begin, end });
      this.#leaves = null;
    }
    return end;
  }

  *#visitChildren(
    element: TtmlElement,
    { style, inner, interval, outer }: { style: Style; inner: Context; interval: ActiveInterval; outer: Outer },
  ): Sliced<number> {
    const { begin, limit } = interval;
    const isSequence = element.attributes.get("timeContainer")?.trim() === "seq";
    const own = { ...inner, style: inherited(style) };
    let last = begin;
    let hasText = false;
    for (const child of element.children) {
      if (typeof child === "string") {
        if (!this.#leaves) continue;
        // A text of a sequence has no duration (TTML 2, 12.2.4), but the space between its elements is kept.
        const hasRead = this.#addLeaf(child, style, inner, {
          begin,
          end: isSequence && child.trim() !== "" ? begin : limit,
        });
        hasText ||= !isSequence && hasRead;
      } else if (TIMED.has(child.name)) {
        const from = isSequence ? last : begin;
        const end = yield* this.#visit(child, own, { from, end: limit, isSequence });
        last = isSequence ? end : Math.max(last, end);
      }
    }
    if (interval.isExplicit) return limit;
    // Nothing says when its text ends: it is shown as long as the element around it, and in a sequence not at all.
    const isOpen =
      element.name === "span" || element.name === "p" ? hasText || last === begin : element.children.length === 0;
    if (isOpen && !outer.isSequence) return limit;
    return Math.min(limit, last);
  }

  #intervalOf({ attributes, line }: TtmlElement, { from, end: outerEnd, isSequence }: Outer): ActiveInterval | null {
    let isFaulty = false;
    const read = (name: string): number | null => {
      const expression = attributes.get(name);
      if (expression === undefined) return null;
      const seconds = this.#clock.seconds(name, expression);
      if (typeof seconds === "number") return seconds;
      if (this.faults.length < DOCUMENT_LIMITS.faults) this.faults.push({ line, message: seconds });
      isFaulty = true;
      return null;
    };
    const begin = from + (read("begin") ?? 0);
    const duration = read("dur");
    const end = read("end");
    if (isFaulty) return null;
    const limit = Math.max(
      begin,
      Math.min(outerEnd, duration === null ? Infinity : begin + duration, end === null ? Infinity : from + end),
    );
    const isExplicit = duration !== null || end !== null;
    return { begin, limit, isExplicit, end: isExplicit || !isSequence ? limit : begin };
  }

  #contextOf(element: TtmlElement, context: Context): Context {
    const region = element.attributes.get("region");
    const space = element.attributes.get("xml:space");
    return {
      style: context.style,
      region: region === undefined ? context.region : this.#styles.region(region.trim()),
      language: this.#languageOf(element, context.language),
      isPreserved: space === undefined ? context.isPreserved : space === "preserve",
    };
  }

  #languageOf({ attributes }: TtmlElement, outer: string | null): string | null {
    const tag = attributes.get("xml:lang")?.trim();
    if (tag === undefined) return outer;
    const known = this.#languages.get(tag);
    if (known !== undefined) return known;
    if (this.#languages.size === MAX_LANGUAGES) return outer;
    const language = canonicalLanguage(tag);
    this.#languages.set(tag, language === "und" ? null : language);
    return this.#languages.get(tag) ?? null;
  }

  /** Returns whether there is something to read in it. */
  #addLeaf(text: string, style: Style, { region, language, isPreserved }: Context, { begin, end }: Interval): boolean {
    const merged = { ...inherited(region), ...style };
    if (!this.#leaves || text === "" || merged["tts:visibility"] === "hidden") return false;
    const ruby = style["tts:ruby"];
    const tags = [
      ...(language !== null && language !== this.#language ? [`lang ${language}`] : []),
      ...tagsOf(merged),
      ...(ruby === "base" ? ["ruby"] : ruby === "text" ? ["ruby", "rt"] : []),
    ];
    this.#leaves.push({ text, tags, isPreserved, begin, end });
    if (!isSpoken({ text })) return false;
    this.#spokenLeaves++;
    return true;
  }

  /**
   * Writes a paragraph: one cue, or one for each of the times at which its text changes. One without an end lasts as long
   * as those of its texts that have one; the others are left out.
   */
  #endParagraph(element: TtmlElement, style: Style, { region }: Context, interval: Interval): void {
    const { line } = element;
    const { begin } = interval;
    const all = this.#leaves ?? [];
    const leaves = all.filter((leaf) => !isSpoken(leaf) || leaf.end < Number.POSITIVE_INFINITY);
    const lastEnd = leaves.filter(isSpoken).reduce((last, leaf) => Math.max(last, leaf.end), 0);
    const end = Math.min(interval.end, Math.max(begin, lastEnd));
    const hasEndless = leaves.length < all.length;
    if (hasEndless) this.#skip(line, "end");
    if (!leaves.some(isSpoken)) {
      if (!hasEndless && !hasImage(element)) this.#skip(line, "text");
    } else if (toMs(end) <= toMs(begin)) this.#skip(line, "duration");
    else {
      const settings = settingsOf({ ...region, ...style }, this.#root);
      const inside = (time: number) => toMs(Math.min(end, Math.max(begin, time)));
      const timed = leaves.map((leaf) => ({ ...leaf, begin: inside(leaf.begin), end: inside(leaf.end) }));
      const edges = [...new Set(timed.flatMap((leaf) => [leaf.begin, leaf.end]))].sort((a, b) => a - b);
      let isShown = false;
      for (const [index, startMs] of edges.slice(0, -1).entries()) {
        this.#timedRuns += leaves.length;
        requireAtMost(this.#timedRuns, MAX_TIMED_RUNS, "texts in paragraphs whose parts have times of their own");
        const text = payloadOf(timed.filter((leaf) => leaf.begin <= startMs && startMs < leaf.end));
        if (text === "") continue;
        isShown = true;
        this.#addCue({ id: null, startMs, endMs: edges[index + 1] as number, settings, text });
      }
      if (!isShown) this.#skip(line, "duration");
    }
  }

  #addCue(cue: PlainCue): void {
    requireAtMost(this.cues.length + this.skipped.length + 1, DOCUMENT_LIMITS.cues, "cues");
    this.#characters += cue.text.length;
    requireAtMost(this.#characters, DOCUMENT_LIMITS.outputCharacters, "characters of text");
    this.cues.push(cue);
  }

  #skip(line: number, reason: SkippedCue["reason"]): void {
    requireAtMost(this.cues.length + this.skipped.length + 1, DOCUMENT_LIMITS.cues, "cues");
    this.skipped.push({ line, reason });
  }
}

/**
 * `limit` is the latest end of what it contains; `isExplicit` where the element says so itself. `end` is that of an
 * element without children.
 */
type ActiveInterval = Interval & { limit: number; isExplicit: boolean };

const isSpoken = ({ text }: Pick<Run, "text">) => text.trim() !== "";
const toMs = (seconds: number) => Math.round(seconds * 1000);

/** The image profile of IMSC, and SMPTE-TT. */
const hasImage = (element: TtmlElement) =>
  element.attributes.has("smpte:backgroundImage") ||
  elementsOf(element).some(
    ({ name, attributes }) => name === "image" || (name === "metadata" && attributes.has("smpte:backgroundImage")),
  );
