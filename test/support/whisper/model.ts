/**
 * A speech model in whisper.cpp's ggml format (`whisper_model_load` in its src/whisper.cpp) that recognizes the same text in
 * any audio: all layers are zero, so that a position's embedding alone selects the next token. It makes the real library
 * load, detect a language, decode and time words in milliseconds, without weights of anybody.
 */

const STATE = 64;
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
};

/** The bytes of a model file. */
export function testModel({
  pieces = [" Hello", " quiet", " world", "."],
  endSeconds = 2,
  languageIndex = 2,
  isMultilingual = true,
}: ModelOptions = {}): Buffer {
  const vocabulary = isMultilingual ? VOCABULARY.multilingual : VOCABULARY.english;
  const eot = isMultilingual ? 50_257 : 50_256;
  const firstLanguage = eot + 2;
  const firstTime = isMultilingual ? 50_364 : 50_363;
  const first = isMultilingual ? 2 : 0;
  /** The tokens that follow a position. */
  const spoken = [firstTime, ...pieces.map((_, index) => index), firstTime + Math.round(endSeconds * 50), eot];
  const tokens = [...new Set([firstLanguage + languageIndex, ...spoken])];
  if (tokens.length > STATE) throw new Error("too many pieces");
  const axisOf = (token: number) => tokens.indexOf(token);

  const embedding = new Uint16Array(vocabulary * STATE);
  for (const token of tokens) embedding[token * STATE + axisOf(token)] = ONE;
  const positions = new Float32Array(TEXT_CONTEXT * STATE);
  if (isMultilingual) positions[axisOf(firstLanguage + languageIndex)] = STRONG;
  for (let position = first; position < TEXT_CONTEXT; position++)
    positions[position * STATE + axisOf(spoken[Math.min(position - first, spoken.length - 1)] as number)] = STRONG;

  const words = pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece));
  // whisper.cpp looks these up without a check, and fails where they are missing.
  const required = [" ", " -", " '"].map((text) => Buffer.from(text));
  const rest = Array.from({ length: eot - words.length - required.length }, (_, index) => Buffer.from(` w${index}`));
  const hyper = [vocabulary, AUDIO_CONTEXT, STATE, 1, 1, TEXT_CONTEXT, STATE, 1, 1, MELS, 1];
  return Buffer.concat([
    int32(0x67676d6c, ...hyper, MELS, BINS),
    Buffer.alloc(MELS * BINS * 4),
    int32(eot),
    ...[...words, ...required, ...rest].flatMap((word) => [int32(word.length), word]),
    ...tensors(vocabulary, embedding, positions),
  ]);
}

/** 1 as a 16-bit float. */
const ONE = 0x3c00;

const int32 = (...values: number[]) => Buffer.from(Int32Array.from(values).buffer);
const bytesOf = (values: Float32Array | Uint16Array) =>
  Buffer.from(values.buffer, values.byteOffset, values.byteLength);

function tensor(name: string, dimensions: number[], data?: Float32Array | Uint16Array, isHalf = false): Buffer {
  const count = dimensions.reduce((product, size) => product * size, 1);
  const content = data ? bytesOf(data) : Buffer.alloc(count * (isHalf ? 2 : 4));
  const type = isHalf ? 1 : 0;
  return Buffer.concat([
    int32(dimensions.length, name.length, type, ...dimensions),
    Buffer.from(name, "latin1"),
    content,
  ]);
}

const half = (name: string, ...dimensions: number[]) => tensor(name, dimensions, undefined, true);
const full = (name: string, ...dimensions: number[]) => tensor(name, dimensions);
const ones = (name: string) => tensor(name, [STATE], new Float32Array(STATE).fill(1));

const norm = (name: string) => [ones(`${name}.weight`), full(`${name}.bias`, STATE)];
const attention = (name: string) => [
  ...norm(`${name}_ln`),
  ...["query", "value", "out"].flatMap((part) => [
    half(`${name}.${part}.weight`, STATE, STATE),
    full(`${name}.${part}.bias`, STATE),
  ]),
  half(`${name}.key.weight`, STATE, STATE),
];
const block = (name: string) => [
  ...attention(`${name}.attn`),
  ...norm(`${name}.mlp_ln`),
  half(`${name}.mlp.0.weight`, STATE, 4 * STATE),
  full(`${name}.mlp.0.bias`, 4 * STATE),
  half(`${name}.mlp.2.weight`, 4 * STATE, STATE),
  full(`${name}.mlp.2.bias`, STATE),
];

const tensors = (vocabulary: number, embedding: Uint16Array, positions: Float32Array): Buffer[] => [
  full("encoder.positional_embedding", STATE, AUDIO_CONTEXT),
  half("encoder.conv1.weight", 3, MELS, STATE),
  full("encoder.conv1.bias", 1, STATE),
  half("encoder.conv2.weight", 3, STATE, STATE),
  full("encoder.conv2.bias", 1, STATE),
  ...norm("encoder.ln_post"),
  ...block("encoder.blocks.0"),
  tensor("decoder.positional_embedding", [STATE, TEXT_CONTEXT], positions),
  tensor("decoder.token_embedding.weight", [STATE, vocabulary], embedding, true),
  ...norm("decoder.ln"),
  ...block("decoder.blocks.0"),
  ...attention("decoder.blocks.0.cross_attn"),
];
