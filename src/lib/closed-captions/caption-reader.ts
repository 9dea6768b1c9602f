import { Cea608Decoder } from "./cea608.ts";
import { Cea708Decoder } from "./cea708.ts";
import type { ShownCaption } from "./shown-caption.ts";
import { type CaptionBytes, type CaptionedCodec, captionBytes } from "./user-data.ts";

/**
 * A frame; times in seconds on the media timeline. `decodedSeconds`: null where only the order of decoding is known, and a text may
 * come late.
 */
type CaptionedFrame = { decodedSeconds: number | null; presentedSeconds: number; data: Buffer };

type Pending = { ms: number; bytes: CaptionBytes };
type Options = {
  /** The codec of frames that are added as a whole. */
  codec?: CaptionedCodec;
  /** CEA-708 is read next to text in CEA-608 too; the caller chooses when it knows all of both. */
  hasBoth?: boolean;
  /** A service appears: the publisher sends its bytes, which may be empty ones. */
  onService: (service: string) => void;
  onCaption: (caption: ShownCaption) => void;
};

/** Frames that wait for those presented before them: more than any encoder reorders. */
const MAX_PENDING = 64;
/** What roll-up and paint-on captions add within this time is one caption: the bytes of a word arrive in pairs. */
const GROWING_MS = 500;
/** What is shown for less cannot be read. It also limits what a publisher can cause. */
const MIN_MS = 100;
/** The main language of CEA-708. */
const MAIN_SERVICE = "service1";
/** The publisher sends this instead of nothing. */
const isEmptyPair = (bytes: readonly number[]) => bytes.every((byte) => (byte & 0x7f) === 0);

/**
 * Reads the closed captions of a stream of video: CEA-608, or CEA-708 where there is no text in CEA-608. Encoders that send both send the
 * same text.
 */
export class CaptionReader {
  readonly #options: Options;
  readonly #decoder: Cea608Decoder;
  readonly #packets: Cea708Decoder;
  readonly #services = new Set<string>();
  /** Pairs of CEA-608 were sent, and some that are not empty. */
  #hasPairs = false;
  #hasText = false;
  /** In the order of presentation. */
  #pending: Pending[] = [];
  #last = 0;
  /** What may still grow, by service. */
  readonly #growing = new Map<string, ShownCaption>();

  constructor(options: Options) {
    this.#options = options;
    this.#decoder = new Cea608Decoder((caption) => this.#shown(caption));
    this.#packets = new Cea708Decoder((caption) => {
      if (options.hasBoth || !this.#hasText) this.#shown(caption);
    });
  }

  /** In the order of decoding. */
  add({ decodedSeconds, presentedSeconds, data }: CaptionedFrame): void {
    const { codec } = this.#options;
    const bytes = codec ? captionBytes(data, codec) : null;
    if (bytes) this.addBytes(presentedSeconds, bytes);
    // What follows is not presented before it is decoded.
    if (decodedSeconds !== null) this.#release(Math.round(decodedSeconds * 1000));
  }

  /** What is shown with the frame at this time, where it is not in the frame. */
  addBytes(presentedSeconds: number, bytes: CaptionBytes): void {
    this.#insert({ ms: Math.round(presentedSeconds * 1000), bytes });
  }

  /** A segment ends: what is shown then ends, and begins again in the next one. */
  endSegment(seconds: number): void {
    const ms = Math.round(seconds * 1000);
    this.#release(ms);
    this.#last = Math.max(this.#last, ms);
    this.#decoder.splitAt(ms);
    this.#packets.splitAt(ms);
    for (const caption of this.#growing.values()) this.#emit(caption);
    this.#growing.clear();
  }

  #insert(one: Pending): void {
    const index = this.#pending.findLastIndex(({ ms }) => ms <= one.ms) + 1;
    this.#pending.splice(index, 0, one);
    if (this.#pending.length > MAX_PENDING) this.#release((this.#pending[0] as Pending).ms + 1);
  }

  #release(beforeMs: number): void {
    while (this.#pending[0] && this.#pending[0].ms < beforeMs) {
      const { ms, bytes } = this.#pending.shift() as Pending;
      this.#last = Math.max(this.#last, ms);
      this.#decode(0, bytes.first);
      this.#decode(1, bytes.second);
      if (bytes.packets.length === 0) continue;
      // Without pairs there is no other text, so the main service is announced before it says something.
      if (!this.#hasPairs) this.#appears(MAIN_SERVICE);
      this.#packets.add(this.#last, bytes.packets);
    }
  }

  #decode(field: 0 | 1, bytes: number[]): void {
    if (bytes.length === 0) return;
    this.#hasPairs = true;
    // The first service of the first field is announced by empty bytes too; others are rare, and few encoders leave them out.
    if (field === 0) this.#appears("cc1");
    if (isEmptyPair(bytes)) return;
    this.#hasText = true;
    this.#decoder.add(field, this.#last, bytes);
  }

  #appears(service: string): void {
    if (this.#services.has(service)) return;
    this.#services.add(service);
    this.#options.onService(service);
  }

  #shown(caption: ShownCaption): void {
    const { service } = caption;
    this.#appears(service);
    const before = this.#growing.get(service);
    const isGrown =
      before !== undefined &&
      before.endMs === caption.startMs &&
      caption.text.startsWith(before.text) &&
      before.endMs - before.startMs < GROWING_MS;
    if (before && !isGrown) this.#emit(before);
    this.#growing.set(service, isGrown ? { ...caption, startMs: before.startMs } : caption);
  }

  #emit(caption: ShownCaption): void {
    if (caption.endMs - caption.startMs >= MIN_MS) this.#options.onCaption(caption);
  }
}
