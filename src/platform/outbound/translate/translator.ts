/** BCP 47 tags. */
export type Pair = { source: string; target: string };
export type TranslateOptions = Pair & {
  /**
   * Texts are XML: `&`, `<` and `>` are escaped; `<g id="1">…</g>` and `<x id="2"/>` are returned in the right place.
   */
  markup: boolean;
  signal: AbortSignal;
};

/** A translation service. Returns as many texts as it received, in order; throws TranslationFailed. */
export interface Translator {
  translate(texts: readonly string[], options: TranslateOptions): Promise<string[]>;
}

/** The service failed, or its response is unusable. The message is for the log and never contains a key. */
export class TranslationFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TranslationFailed";
  }
}

/** The service does not translate between these languages: a retry does not help. */
export class PairUnknown extends Error {
  constructor() {
    super("The translation service does not translate between these languages.");
    this.name = "PairUnknown";
  }
}
