import { CaptionText, type ShownCaption } from "#lib/closed-captions";

/** A WebVTT text; `service`: `cc1` to `cc4`, or `service1` and more. */
export type SourceCaptions = { service: string; vtt: string };

/** The texts of all services of a source, within its length. */
export class ServiceTexts {
  readonly #endMs: number;
  readonly #texts = new Map<string, CaptionText>();

  constructor(durationSeconds: number | null) {
    this.#endMs = durationSeconds === null ? Number.POSITIVE_INFINITY : Math.round(durationSeconds * 1000);
  }

  add({ endMs, ...caption }: ShownCaption): void {
    if (caption.startMs >= this.#endMs) return;
    const text = this.#texts.get(caption.service) ?? new CaptionText();
    this.#texts.set(caption.service, text);
    text.add({ ...caption, endMs: Math.min(endMs, this.#endMs) });
  }

  /** CEA-608, or CEA-708 where there is no text in CEA-608: encoders that send both send the same text. */
  end(): SourceCaptions[] {
    const services = [...this.#texts.keys()].sort();
    const first = services.filter((service) => service.startsWith("cc"));
    return (first.length > 0 ? first : services).map((service) => ({
      service,
      vtt: this.#texts.get(service)?.end() ?? "",
    }));
  }
}
