/** Tags of BCP 47. */
export type Pair = { source: string; target: string };
export type TranslateOptions = Pair & {
  /** The texts are XML: `&`, `<` and `>` are escaped, `<g id="1">…</g>` and `<x id="2"/>` come back where they belong. */
  markup: boolean;
  signal: AbortSignal;
};

/** A translation service. Answers as many texts as it got, in their order; throws TranslationFailed. */
export interface Translator {
  translate(texts: readonly string[], options: TranslateOptions): Promise<string[]>;
}

/** The service could not, or answered nonsense. The message is for the log and never holds a key. */
export class TranslationFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TranslationFailed";
  }
}

/** The service does not translate between these languages: asking again does not help. */
export class PairUnknown extends Error {
  constructor() {
    super("The translation service does not translate between these languages.");
    this.name = "PairUnknown";
  }
}
