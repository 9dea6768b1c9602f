/**
 * A speech model in whisper.cpp's ggml format (`whisper_model_load` in its src/whisper.cpp) that recognizes the same text in
 * any audio: all layers are zero, so that a position's embedding alone selects the next token. It makes the real library
 * load, detect a language, decode and time words in milliseconds, without weights of anybody.
 */

const AUDIO_CONTEXT = 1500;
const TEXT_CONTEXT = 448;
const MELS = 80;
const BINS = 201;
const VOCABULARY = { multilingual: 51_865, english: 51_864 };
/** Larger than what the other tokens of a position receive together. */
const STRONG = 40;

type ModelOptions = {
  /** Pieces as the tokenizer makes them: those with a leading space begin a word. */
  pieces?: readonly (string | Buffer)[];
  /** End of the speech in the part, in seconds. */
  endSeconds?: number;
  /** Index of the detected language in whisper.cpp's list: 0 is English, 2 German. */
  languageIndex?: number;
  isMultilingual?: boolean;
  /** Its size, which decides how long it takes; 384, 4 and 6 are those of the model `tiny`. Default: the smallest. */
  size?: Size;
  /** The type of the weights. */
  weights?: Weights;
};
type Size = { state: number; layers: number; heads: number };
const SMALLEST: Size = { state: 64, layers: 1, heads: 1 };

/** The bytes of a model file. */
export function testModel({
  pieces = [" Hello", " quiet", " world", "."],
  endSeconds = 2,
  languageIndex = 2,
  isMultilingual = true,
  size = SMALLEST,
  weights = "f16",
}: ModelOptions = {}): Buffer {
  const { state, layers, heads } = size;
  const vocabulary = isMultilingual ? VOCABULARY.multilingual : VOCABULARY.english;
  const eot = isMultilingual ? 50_257 : 50_256;
  const firstLanguage = eot + 2;
  const firstTime = isMultilingual ? 50_364 : 50_363;
  const first = isMultilingual ? 2 : 0;
  /** The tokens that follow a position. */
  const spoken = [firstTime, ...pieces.map((_, index) => index), firstTime + Math.round(endSeconds * 50), eot];
  const tokens = [...new Set([firstLanguage + languageIndex, ...spoken])];
  if (tokens.length > state) throw new Error("too many pieces");
  const axisOf = (token: number) => tokens.indexOf(token);

  const embedding = new Set(tokens.map((token) => token * state + axisOf(token)));
  const positions = new Float32Array(TEXT_CONTEXT * state);
  if (isMultilingual) positions[axisOf(firstLanguage + languageIndex)] = STRONG;
  for (let position = first; position < TEXT_CONTEXT; position++)
    positions[position * state + axisOf(spoken[Math.min(position - first, spoken.length - 1)] as number)] = STRONG;

  const words = pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece));
  // whisper.cpp looks these up without a check, and fails where they are missing.
  const required = [" ", " -", " '"].map((text) => Buffer.from(text));
  const rest = Array.from({ length: eot - words.length - required.length }, (_, index) => Buffer.from(` w${index}`));
  const hyper = [
    vocabulary,
    AUDIO_CONTEXT,
    state,
    heads,
    layers,
    TEXT_CONTEXT,
    state,
    heads,
    layers,
    MELS,
    TYPES[weights].file,
  ];
  return Buffer.concat([
    int32(0x67676d6c, ...hyper, MELS, BINS),
    Buffer.alloc(MELS * BINS * 4),
    int32(eot),
    ...[...words, ...required, ...rest].flatMap((word) => [int32(word.length), word]),
    ...tensors(size, { vocabulary, embedding, positions, weights }),
  ]);
}

/** 1 as a 16-bit float. */
const ONE = Buffer.from([0x00, 0x3c]);

/**
 * Types of weights: their numbers in the header (`ggml_ftype`) and of tensors (`ggml_type`), and blocks of values that are 0 but for
 * some (ggml-common.h).
 */
const TYPES = {
  f16: { file: 1, tensor: 1, values: 1, block: (ones: readonly number[]) => (ones.length > 0 ? ONE : Buffer.alloc(2)) },
  q8_0: {
    file: 7,
    tensor: 8,
    values: 32,
    block: (ones: readonly number[]) =>
      Buffer.concat([ONE, Buffer.from(Array.from({ length: 32 }, (_, at) => (ones.includes(at) ? 1 : 0)))]),
  },
  // 16 is 0.
  q5_0: { file: 8, tensor: 6, values: 32, block: (ones: readonly number[]) => fives([ONE], ones, 16) },
  q5_1: { file: 9, tensor: 7, values: 32, block: (ones: readonly number[]) => fives([ONE, Buffer.alloc(2)], ones, 0) },
};
type Weights = keyof typeof TYPES;

/** A block of numbers of five bits: the fifth bits, then nibbles, the first half in the lower ones. */
function fives(head: readonly Buffer[], ones: readonly number[], zero: number): Buffer {
  const value = (at: number) => (ones.includes(at) ? zero + 1 : zero);
  const high = Buffer.alloc(4, zero === 16 ? 255 : 0);
  return Buffer.concat([
    ...head,
    high,
    Buffer.from(Array.from({ length: 16 }, (_, at) => (value(at) & 15) | ((value(at + 16) & 15) << 4))),
  ]);
}

const int32 = (...values: number[]) => Buffer.from(Int32Array.from(values).buffer);

const head = (name: string, dimensions: readonly number[], type: number) =>
  Buffer.concat([int32(dimensions.length, name.length, type, ...dimensions), Buffer.from(name, "latin1")]);
const countOf = (dimensions: readonly number[]) => dimensions.reduce((product, size) => product * size, 1);

function full(name: string, dimensions: number[], data = new Float32Array(countOf(dimensions))): Buffer {
  return Buffer.concat([head(name, dimensions, 0), Buffer.from(data.buffer, data.byteOffset, data.byteLength)]);
}

/** A tensor of 0, but for the values of `ones`, which are 1. */
function weight(name: string, dimensions: number[], weights: Weights, ones: Iterable<number> = []): Buffer {
  const { tensor, values, block } = TYPES[weights];
  const empty = block([]);
  const content = Buffer.alloc((countOf(dimensions) / values) * empty.length, empty);
  const byBlock = Map.groupBy(ones, (at) => Math.floor(at / values));
  for (const [index, each] of byBlock) block(each.map((at) => at % values)).copy(content, index * empty.length);
  return Buffer.concat([head(name, dimensions, tensor), content]);
}

type Known = {
  vocabulary: number;
  embedding: ReadonlySet<number>;
  positions: Float32Array<ArrayBuffer>;
  weights: Weights;
};

function tensors({ state, layers }: Size, { vocabulary, embedding, positions, weights }: Known): Buffer[] {
  const half = (name: string, ...dimensions: number[]) => weight(name, dimensions, weights);
  const zeros = (name: string, ...dimensions: number[]) => full(name, dimensions);
  const norm = (name: string) => [
    full(`${name}.weight`, [state], new Float32Array(state).fill(1)),
    zeros(`${name}.bias`, state),
  ];
  const attention = (name: string) => [
    ...norm(`${name}_ln`),
    ...["query", "value", "out"].flatMap((part) => [
      half(`${name}.${part}.weight`, state, state),
      zeros(`${name}.${part}.bias`, state),
    ]),
    half(`${name}.key.weight`, state, state),
  ];
  const block = (name: string) => [
    ...attention(`${name}.attn`),
    ...norm(`${name}.mlp_ln`),
    half(`${name}.mlp.0.weight`, state, 4 * state),
    zeros(`${name}.mlp.0.bias`, 4 * state),
    half(`${name}.mlp.2.weight`, 4 * state, state),
    zeros(`${name}.mlp.2.bias`, state),
  ];
  const each = (create: (layer: number) => Buffer[]) =>
    Array.from({ length: layers }, (_, layer) => create(layer)).flat();
  return [
    zeros("encoder.positional_embedding", state, AUDIO_CONTEXT),
    // Convolutions are never quantized.
    weight("encoder.conv1.weight", [3, MELS, state], "f16"),
    zeros("encoder.conv1.bias", 1, state),
    weight("encoder.conv2.weight", [3, state, state], "f16"),
    zeros("encoder.conv2.bias", 1, state),
    ...norm("encoder.ln_post"),
    ...each((layer) => block(`encoder.blocks.${layer}`)),
    full("decoder.positional_embedding", [state, TEXT_CONTEXT], positions),
    weight("decoder.token_embedding.weight", [state, vocabulary], weights, embedding),
    ...norm("decoder.ln"),
    ...each((layer) => [...block(`decoder.blocks.${layer}`), ...attention(`decoder.blocks.${layer}.cross_attn`)]),
  ];
}
