/** The parts of an SDP offer (RFC 8866, RFC 8829) that a WHIP server needs. */

export type Codec = { payloadType: number; name: string; clockRate: number; parameters: Map<string, string> };

export type OfferedMedia = {
  kind: "audio" | "video" | "other";
  /** The first fields of the m= line, which an answer repeats. */
  protocol: string;
  formats: readonly string[];
  mid: string;
  /** The peer sends it: `sendrecv` or `sendonly`, and the port is not 0, or the media are `bundle-only` (RFC 9143, 6). */
  isSent: boolean;
  codecs: readonly Codec[];
  /** Feedback messages by payload type; `*` for all. */
  feedback: ReadonlyMap<string, ReadonlySet<string>>;
  /** Identifiers of header extensions by URI. */
  extensions: ReadonlyMap<string, number>;
  /** RTP stream identifiers that are sent (RFC 8851), in the order of the offer. Empty without simulcast. */
  rids: readonly string[];
};

export type Offer = {
  ufrag: string;
  password: string;
  fingerprints: readonly Fingerprint[];
  setup: string;
  /** The mids of the BUNDLE group; empty without one. */
  bundle: readonly string[];
  hasRtcpMux: boolean;
  media: readonly OfferedMedia[];
};

/** `value`: hexadecimal, lower case, without colons. */
export type Fingerprint = { algorithm: string; value: string };

/** The offer is malformed. The message says where. */
export class OfferInvalid extends Error {}

/** A browser's offer has a few hundred lines. */
const MAX_LINES = 5000;
const MAX_LINE_CHARACTERS = 4096;
const MAX_MEDIA = 16;
/** Codecs, rules of feedback, extensions and layers of a media description. */
const MAX_ENTRIES = 256;
const ICE_CHARACTERS = /^[A-Za-z0-9+/=_-]{4,256}$/;
const DIRECTIONS = new Set(["sendrecv", "sendonly", "recvonly", "inactive"]);

type Section = {
  media: OfferedMedia;
  direction: string;
  codecs: Map<number, Codec>;
  parameters: Map<number, string>;
  feedback: Map<string, Set<string>>;
  extensions: Map<string, number>;
  rids: Set<string>;
};

/** Parses an offer, in linear time. Throws OfferInvalid. */
export function readOffer(text: string): Offer {
  const lines = text.split("\n", MAX_LINES + 1);
  if (lines.length > MAX_LINES) throw new OfferInvalid(`The offer has more than ${MAX_LINES} lines.`);
  if (lines[0]?.trimEnd() !== "v=0") throw new OfferInvalid('The offer does not begin with "v=0".');
  const reader = new OfferReader();
  for (const [index, line] of lines.entries()) reader.read(line.trimEnd(), index + 1);
  return reader.offer();
}

class OfferReader {
  #ufrag = "";
  #password = "";
  #setup = "";
  /** What media descriptions have unless they state another one (RFC 8866, 6.7). */
  #direction = "sendrecv";
  #bundle: string[] = [];
  readonly #fingerprints: Fingerprint[] = [];
  readonly #sections: Section[] = [];
  readonly #multiplexed = new Set<Section>();

  /** Reads a line; `number` counts from 1. */
  read(content: string, number: number): void {
    if (content === "") return;
    if (content.length > MAX_LINE_CHARACTERS || content[1] !== "=")
      throw new OfferInvalid(`Line ${number} of the offer is not a line of SDP.`);
    const value = content.slice(2);
    if (content[0] === "m") {
      if (this.#sections.length >= MAX_MEDIA) throw new OfferInvalid(`The offer has more than ${MAX_MEDIA} media.`);
      this.#sections.push(newSection(value, number, this.#direction));
    }
    if (content[0] !== "a") return;
    const [name, argument] = cut(value, ":");
    const section = this.#sections.at(-1);
    if (this.#readShared(name, argument)) return;
    if (section) this.#readMedia(section, name, argument);
    else this.#readSession(name, argument);
  }

  /** Attributes that may be of the session or of its media; the first ones count. */
  #readShared(name: string, argument: string): boolean {
    if (name === "ice-ufrag") this.#ufrag ||= argument;
    else if (name === "ice-pwd") this.#password ||= argument;
    else if (name === "setup") this.#setup ||= argument;
    else if (name !== "fingerprint") return false;
    else if (this.#fingerprints.length < MAX_MEDIA) this.#fingerprints.push(readFingerprint(argument));
    return true;
  }

  #readSession(name: string, argument: string): void {
    if (DIRECTIONS.has(name)) this.#direction = name;
    if (name !== "group") return;
    const [semantics, ...mids] = argument.split(" ");
    if (semantics === "BUNDLE") this.#bundle = mids;
  }

  #readMedia(section: Section, name: string, argument: string): void {
    if (DIRECTIONS.has(name)) section.direction = name;
    else if (name === "rtcp-mux") this.#multiplexed.add(section);
    // On the connection of other media (RFC 9143, 6): the port is 0.
    else if (name === "bundle-only") section.media = { ...section.media, isSent: true };
    else readAttribute(section, name, argument);
  }

  offer(): Offer {
    if (!ICE_CHARACTERS.test(this.#ufrag) || !ICE_CHARACTERS.test(this.#password))
      throw new OfferInvalid("The offer has no valid ICE credentials (ice-ufrag, ice-pwd).");
    if (this.#fingerprints.length === 0) throw new OfferInvalid("The offer has no fingerprint of a certificate.");
    return {
      ufrag: this.#ufrag,
      password: this.#password,
      fingerprints: this.#fingerprints,
      setup: this.#setup || "actpass",
      bundle: this.#bundle,
      hasRtcpMux: this.#sections.every(
        (section) => section.media.kind === "other" || !mediaOf(section).isSent || this.#multiplexed.has(section),
      ),
      media: this.#sections.map(mediaOf),
    };
  }
}

function newSection(value: string, line: number, direction: string): Section {
  const [type = "", port = "", protocol = "", ...formats] = value.split(" ");
  if (type === "" || !isNumber(port) || protocol === "" || formats.length === 0 || formats.length > MAX_ENTRIES)
    throw new OfferInvalid(`Line ${line} of the offer is not a media description.`);
  const kind = type === "audio" || type === "video" ? type : "other";
  const media = { kind, protocol, formats, mid: "", isSent: Number(port) !== 0 } as const;
  return {
    media: { ...media, codecs: [], feedback: new Map(), extensions: new Map(), rids: [] },
    direction,
    codecs: new Map(),
    parameters: new Map(),
    feedback: new Map(),
    extensions: new Map(),
    rids: new Set(),
  };
}

function readAttribute(section: Section, name: string, argument: string): void {
  const [first, rest] = cut(argument, " ");
  const { codecs, parameters, feedback, extensions, rids, media } = section;
  if (name === "mid") section.media = { ...media, mid: argument };
  else if (name === "rtpmap" && isNumber(first) && codecs.size < MAX_ENTRIES) {
    const [codec = "", rate = ""] = rest.split("/");
    const payloadType = Number(first);
    codecs.set(payloadType, { payloadType, name: codec.toLowerCase(), clockRate: Number(rate), parameters: new Map() });
  } else if (name === "fmtp" && isNumber(first) && parameters.size < MAX_ENTRIES) parameters.set(Number(first), rest);
  else if (name === "rtcp-fb" && feedback.size < MAX_ENTRIES) {
    const known = feedback.get(first) ?? new Set();
    if (known.size < MAX_ENTRIES) feedback.set(first, known.add(rest));
  } else if (name === "extmap" && extensions.size < MAX_ENTRIES) {
    const [id] = cut(first, "/");
    const [uri] = cut(rest, " ");
    // One-byte headers have identifiers up to 14 (RFC 8285, 4.2).
    if (isNumber(id) && Number(id) >= 1 && Number(id) <= 14) extensions.set(uri, Number(id));
  } else if (name === "rid" && rids.size < MAX_ENTRIES) {
    const [direction] = cut(rest, " ");
    if (direction === "send") rids.add(first);
  }
}

function mediaOf({ media, direction, codecs, parameters, feedback, extensions, rids }: Section): OfferedMedia {
  const ordered = media.formats.flatMap((format) => (isNumber(format) ? (codecs.get(Number(format)) ?? []) : []));
  return {
    ...media,
    feedback,
    extensions,
    rids: [...rids],
    isSent: media.isSent && (direction === "sendrecv" || direction === "sendonly"),
    codecs: ordered.map((codec) => ({ ...codec, parameters: readParameters(parameters.get(codec.payloadType) ?? "") })),
  };
}

function readParameters(text: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const parameter of text.split(";", MAX_ENTRIES)) {
    const [name, value] = cut(parameter.trim(), "=");
    parameters.set(name.toLowerCase(), value);
  }
  return parameters;
}

function readFingerprint(text: string): Fingerprint {
  const [algorithm, value] = cut(text, " ");
  return { algorithm: algorithm.toLowerCase(), value: value.replaceAll(":", "").trim().toLowerCase() };
}

/** The text before the first separator, and the rest. */
function cut(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

const isNumber = (text: string) => /^\d{1,9}$/.test(text);
