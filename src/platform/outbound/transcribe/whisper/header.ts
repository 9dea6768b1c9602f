import { type FileHandle, open } from "node:fs/promises";

/** `ggml` as a little-endian number (whisper_model_load in whisper.cpp). */
const MAGIC = 0x67676d6c;
const FIELDS = 12;
/** Models with fewer tokens know English only. */
const MULTILINGUAL_TOKENS = 51_865;

export type ModelHeader = { isMultilingual: boolean };

/**
 * Reads the header of a model file, whose values the library would use as sizes. Returns what is wrong with it instead,
 * as the end of a sentence.
 */
export async function readHeader(path: string): Promise<ModelHeader | string> {
  let file: FileHandle | undefined;
  try {
    file = await open(path);
    const header = Buffer.alloc(FIELDS * 4);
    const { bytesRead } = await file.read(header, 0, header.length, 0);
    if (bytesRead < header.length) return "is too short for a model";
    const [magic, tokens, audioContext, audioState, audioHeads, audioLayers, textContext, textState, ...rest] =
      Array.from({ length: FIELDS }, (_, index) => header.readInt32LE(index * 4)) as [
        ...[number, number, number, number, number, number, number, number],
        ...number[],
      ];
    if (magic !== MAGIC) return "is not a model in whisper.cpp's ggml format";
    const sizes = [
      tokens,
      audioContext,
      audioState,
      audioHeads,
      audioLayers,
      textContext,
      textState,
      ...rest.slice(0, 3),
    ];
    // Twice the largest of the models in each, and more.
    const isPlausible = sizes.every((size) => size > 0 && size <= 120_000) && audioLayers <= 128 && audioState <= 8192;
    if (!isPlausible || tokens < 50_000) return "has a damaged header";
    return { isMultilingual: tokens >= MULTILINGUAL_TOKENS };
  } finally {
    await file?.close();
  }
}
