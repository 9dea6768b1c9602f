import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { recognize } from "#platform/outbound/transcribe/whisper/recognize.ts";
import { toneFile } from "#test/support/whisper/audio.ts";
import { testModel } from "#test/support/whisper/model.ts";
import { workFolder } from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const AUDIO_SECONDS = 29;
const ROUNDS = 3;
/** Dimensions of the models of the whisper.cpp project with these names; the weights do not change the time. */
const MODELS = {
  tiny: { size: { state: 384, layers: 4, heads: 6 }, weights: "f16" },
  "tiny-q8_0": { size: { state: 384, layers: 4, heads: 6 }, weights: "q8_0" },
  "tiny-q5_1": { size: { state: 384, layers: 4, heads: 6 }, weights: "q5_1" },
  base: { size: { state: 512, layers: 6, heads: 8 }, weights: "f16" },
} as const;

/** One part of audio by whisper.cpp, with the loops for AVX2 and with those of its library. */
export async function benchSpeech(): Promise<Result[]> {
  const work = workFolder();
  const wavPath = toneFile(join(work.path, "audio.wav"), AUDIO_SECONDS, [[0, AUDIO_SECONDS]]);
  const signal = new AbortController().signal;
  const results: Result[] = [];
  try {
    for (const [name, options] of Object.entries(MODELS)) {
      const model = join(work.path, `${name}.bin`);
      writeFileSync(model, testModel(options));
      const seconds = (processor: ReadonlySet<string>) => async () => {
        const cwd = join(work.path, "run");
        mkdirSync(cwd, { recursive: true });
        const startedAt = performance.now();
        const audio = { wavPath, cwd, durationSeconds: AUDIO_SECONDS, language: "en", signal };
        await recognize(audio, { model, threads: 1, processor });
        return (performance.now() - startedAt) / 1000;
      };
      const samples = await alternately(ROUNDS, {
        ours: seconds(new Set(["avx2", "fma", "f16c"])),
        theirs: seconds(new Set()),
      });
      const about = { reference: "the loops of the library, for any processor", unit: "s", bar: { atMost: 0.5 } };
      results.push(compare(`${AUDIO_SECONDS} s of speech, a model of the size of ${name}`, samples, about));
    }
    return results;
  } finally {
    work.remove();
  }
}
