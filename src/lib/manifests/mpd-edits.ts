import { XmlFault, type XmlToken, xmlTokens } from "#lib/xml";

/** A part of the text of a manifest. */
export type TextRange = { from: number; to: number };

/** An AdaptationSet, from its start tag to the end of its end tag. */
export type MpdSetRange = TextRange & {
  /** The end of the start tag. */
  openTo: number;
  isAudio: boolean;
  /** Counts of channels that it states for all of its representations. */
  channels: readonly number[];
  representations: readonly MpdRepresentationRange[];
};

/** A Representation. `codecs`: its own, else those of the set. `channels`: the counts that it states. */
export type MpdRepresentationRange = TextRange & {
  id: string;
  codecs: string | undefined;
  channels: readonly number[];
};

/** A change of a DASH manifest: it removes, replaces and inserts text at the positions that a draft has. */
export type MpdEdit = (draft: MpdDraft) => void;

/**
 * Reads a DASH manifest once, as far as an edit needs it, and writes it once with all edits. What they do not name stays
 * byte for byte. Linear in time. Throws TooComplex.
 */
export function editMpd(mpd: string, edits: readonly MpdEdit[]): string {
  const draft = new MpdDraft(mpd);
  for (const edit of edits) edit(draft);
  return draft.written();
}

/** Schemes of ISO/IEC 23091-3 (ChannelConfiguration), whose values up to 2 are mono and stereo. */
const CHANNEL_CONFIGURATION =
  /^urn:mpeg:(dash:23003:3:audio_channel_configuration:2011|mpegB:cicp:ChannelConfiguration)$/;
/** Thousands of elements, which no edit changes. */
const NOT_READ = new Set(["SegmentTimeline"]);
const PERIOD_END = "</Period>";

type Tag = Exclude<XmlToken, { kind: "text" }>;
type OpenToken = Extract<Tag, { kind: "open" }>;
type OpenSet = Omit<MpdSetRange, "to" | "channels" | "representations"> & {
  codecs: string | undefined;
  channels: number[];
  representations: OpenRepresentation[];
};
type OpenRepresentation = MpdRepresentationRange & { channels: number[] };

/** A manifest with the changes so far. */
export class MpdDraft {
  readonly text: string;
  readonly #tokens: Iterator<XmlToken>;
  readonly #changes: (TextRange & { text: string })[] = [];
  #next: Tag | null = null;
  #isWellFormed = true;
  #base: { at: number; own: boolean } | null | undefined;
  #sets: MpdSetRange[] | undefined;

  constructor(text: string) {
    this.text = text;
    this.#tokens = xmlTokens(text, { notRead: NOT_READ });
  }

  /** Whether the whole manifest is XML. Reads all of it. */
  isWellFormed(): boolean {
    this.sets();
    return this.#isWellFormed;
  }

  /** The sets that no edit has removed, as the edits so far leave them. Reads the whole manifest, up to a fault. */
  sets(): readonly MpdSetRange[] {
    this.base();
    this.#sets ??= this.#readSets();
    return this.#sets;
  }

  /**
   * Where a base of all references belongs: at the text of the manifest's own BaseURL, or as an element (ISO/IEC 23009-1,
   * 5.3.1.2: it follows ProgramInformation and precedes all other children of MPD). Null without an MPD element.
   */
  base(): { at: number; own: boolean } | null {
    if (this.#base === undefined) this.#base = this.#readBase();
    return this.#base;
  }

  /** The position at which the only period ends; null where there are several. */
  endOfPeriod(): number | null {
    const at = this.text.lastIndexOf(PERIOD_END);
    return at < 0 || this.text.indexOf(PERIOD_END) !== at ? null : at;
  }

  insert(at: number, text: string): void {
    this.replace({ from: at, to: at }, text);
  }

  /** The range must not overlap with one that was replaced. */
  replace({ from, to }: TextRange, text: string): void {
    this.#changes.push({ from, to, text });
  }

  remove(set: MpdSetRange): void {
    this.replace(set, "");
    this.#sets = this.sets().filter((one) => one !== set);
  }

  /** Removes representations of a set, which keeps others. */
  removeFrom(set: MpdSetRange, removed: readonly MpdRepresentationRange[]): void {
    for (const one of removed) this.replace(one, "");
    const representations = set.representations.filter((one) => !removed.includes(one));
    this.#sets = this.sets().map((one) => (one === set ? { ...set, representations } : one));
  }

  written(): string {
    const pieces: string[] = [];
    let done = 0;
    // What is inserted at the start of a removed range stays.
    const changes = this.#changes.toSorted((a, b) => a.from - b.from || a.to - b.to);
    for (const { from, to, text } of changes) {
      // It was in a set that was removed afterwards.
      if (from < done) continue;
      pieces.push(this.text.slice(done, from), text);
      done = to;
    }
    return [...pieces, this.text.slice(done)].join("");
  }

  /** The next tag; null at the end, and at a fault. */
  #tag(): Tag | null {
    try {
      for (let next = this.#tokens.next(); !next.done; next = this.#tokens.next())
        if (next.value.kind !== "text") return next.value;
    } catch (error) {
      if (!(error instanceof XmlFault)) throw error;
      this.#isWellFormed = false;
    }
    return null;
  }

  #readBase(): { at: number; own: boolean } | null {
    let after: number | null = null;
    for (let token = this.#tag(); token; token = this.#tag()) {
      if (token.name === "Period") {
        this.#next = token;
        break;
      }
      if (token.kind === "open" && token.name === "BaseURL" && !token.isEmpty)
        return { at: token.to + blanksAt(this.text, token.to), own: true };
      if (token.kind === "open" && token.name === "MPD") after ??= token.to;
      const isInformation = token.name === "ProgramInformation" && (token.kind === "close" || token.isEmpty);
      if (isInformation) after = token.to;
    }
    return after === null ? null : { at: after, own: false };
  }

  #readSets(): MpdSetRange[] {
    const sets: MpdSetRange[] = [];
    let set: OpenSet | null = null;
    let open: OpenRepresentation | null = null;
    for (let token = this.#next ?? this.#tag(); token; token = this.#tag()) {
      if (token.kind === "open") {
        if (token.name === "AdaptationSet" && !token.isEmpty) set = openSet(token);
        else if (set && token.name === "Representation") {
          const codecs = token.attributes.get("codecs") ?? set.codecs;
          open = { from: token.from, to: token.to, id: token.attributes.get("id") ?? "", codecs, channels: [] };
          set.representations.push(open);
          if (token.isEmpty) open = null;
        } else if (set && token.name === "AudioChannelConfiguration") addChannels(open ?? set, token);
      } else if (set && token.name === "Representation" && open) {
        open.to = token.to;
        open = null;
      } else if (set && token.name === "AdaptationSet") {
        sets.push({ ...set, to: token.to });
        set = null;
      }
    }
    return sets;
  }
}

function openSet(token: OpenToken): OpenSet {
  const { from, to, attributes } = token;
  const isAudio = attributes.get("contentType") === "audio" || (attributes.get("mimeType") ?? "").startsWith("audio/");
  return { from, openTo: to, isAudio, codecs: attributes.get("codecs"), channels: [], representations: [] };
}

function addChannels({ channels }: { channels: number[] }, { attributes }: OpenToken): void {
  if (CHANNEL_CONFIGURATION.test(attributes.get("schemeIdUri") ?? ""))
    channels.push(Number(attributes.get("value") ?? ""));
}

/** How many characters from `from` on, up to the next tag, are space. */
function blanksAt(text: string, from: number): number {
  const next = text.indexOf("<", from);
  const own = text.slice(from, next === -1 ? text.length : next);
  return own.length - own.trimStart().length;
}
