import { type Screen, ServiceScreen } from "./service-screen.ts";
import type { ShownCaption } from "./shown-caption.ts";
import type { PacketBytes } from "./user-data.ts";

const MOST_BYTES = 128;
/** Services with a number of more bits have it in a byte of their own. */
const EXTENDED_NUMBER = 7;
/** Publishers have one for each language, at most six of them in ATSC. */
const MAX_SERVICES = 6;

type Service = { screen: ServiceScreen; shown: (Screen & { startMs: number }) | null };

/** As the standard names them: `service1` is the main language. */
const nameOf = (number: number): string => `service${number}`;

/**
 * Decodes CEA-708 (ANSI/CTA-708-E): packets, the blocks of services in them, and what these show. `onShown`: in the order in which
 * they end.
 */
export class Cea708Decoder {
  readonly #onShown: (caption: ShownCaption) => void;
  readonly #services = new Map<number, Service>();
  /** The packet that is being received; its first byte is the header. */
  #packet: number[] = [];

  constructor(onShown: (caption: ShownCaption) => void) {
    this.#onShown = onShown;
  }

  /** Bytes of the frame that is shown at `ms`. Times must not decrease. */
  add(ms: number, parts: readonly PacketBytes[]): void {
    for (const { isStart, bytes } of parts) {
      if (isStart) this.#packet = [];
      else if (this.#packet.length === 0) continue;
      this.#packet.push(...bytes);
      const size = sizeOf(this.#packet[0] as number);
      if (this.#packet.length < size) continue;
      this.#read(this.#packet.slice(1, size), ms);
      this.#packet = [];
    }
  }

  /** Ends what is shown at `ms`, and begins it again: a player that begins there needs it. */
  splitAt(ms: number): void {
    for (const [number, service] of this.#services) this.#show(number, service, service.shown, ms);
  }

  /** The blocks of a packet (6.2). */
  #read(data: readonly number[], ms: number): void {
    for (let at = 0; at < data.length; ) {
      const head = data[at++] as number;
      const size = head & 0x1f;
      let number = head >> 5;
      if (number === EXTENDED_NUMBER && size > 0) number = (data[at++] ?? 0) & 0x3f;
      // The rest is padding.
      if (number === 0 || size === 0) return;
      const service = this.#service(number);
      if (service && at + size <= data.length) {
        service.screen.write(data.slice(at, at + size));
        this.#show(number, service, service.screen.shown, ms);
      }
      at += size;
    }
  }

  #service(number: number): Service | null {
    const known = this.#services.get(number);
    if (known) return known;
    if (this.#services.size >= MAX_SERVICES) return null;
    const service: Service = { screen: new ServiceScreen(), shown: null };
    this.#services.set(number, service);
    return service;
  }

  /** What is shown changes; the same text is ended and begins again only where it is the same object. */
  #show(number: number, service: Service, next: Screen | null, ms: number): void {
    const { shown } = service;
    if (shown && next !== shown && next?.text === shown.text && next.row === shown.row) return;
    if (shown && shown.startMs < ms) {
      const { startMs, text, row } = shown;
      this.#onShown({ service: nameOf(number), startMs, endMs: ms, text, row });
    }
    service.shown = next && { text: next.text, row: next.row, startMs: ms };
  }
}

/** Bytes of a packet with its header (5.). */
const sizeOf = (header: number): number => (header & 0x3f ? (header & 0x3f) * 2 : MOST_BYTES);
