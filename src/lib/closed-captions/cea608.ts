import { Cta608Parser } from "@svta/cml-608";
import type { ShownCaption } from "./shown-caption.ts";

/** By their usual names: CC1 and CC2 are in the first field, CC3 and CC4 in the second one. */
export const SERVICES = ["cc1", "cc2", "cc3", "cc4"] as const;
export type Service = (typeof SERVICES)[number];

type Screen = { rows: readonly { isEmpty(): boolean; getTextString(): string }[] };

/** Decodes CEA-608 (ANSI/CTA-608-E): pop-on, paint-on and roll-up captions. `onShown`: in the order in which they end. */
export class Cea608Decoder {
  readonly #fields: readonly [Cta608Parser, Cta608Parser];

  constructor(onShown: (caption: ShownCaption) => void) {
    const output = (service: Service) => ({
      newCue(startMs: number | null, endMs: number, { rows }: Screen) {
        const row = rows.findIndex((each) => !each.isEmpty());
        if (startMs === null || row < 0 || endMs <= startMs) return;
        const text = rows
          .map((each) => each.getTextString().trim())
          .filter(Boolean)
          .join("\n");
        if (text !== "") onShown({ service, startMs, endMs, text, row });
      },
    });
    this.#fields = [
      new Cta608Parser(1, output("cc1"), output("cc2")),
      new Cta608Parser(3, output("cc3"), output("cc4")),
    ];
    // It writes faults of the data to standard output.
    for (const field of this.#fields) (field as unknown as { logger: { log(): void } }).logger.log = () => {};
  }

  /** Pairs of bytes of a field, 0 or 1, of the frame that is shown at `ms`. Times must not decrease. */
  add(field: 0 | 1, ms: number, bytes: number[]): void {
    try {
      this.#fields[field].addData(ms, bytes);
    } catch {
      // Rows that no screen has, and the like. What follows is decoded as after an erased screen.
      this.#fields[field].reset();
    }
  }

  /** Ends what is shown at `ms`, and begins it again: a player that begins there needs it. */
  splitAt(ms: number): void {
    for (const field of this.#fields) field.cueSplitAtTime(ms);
  }
}
