import { primaryLanguage } from "../../lib/language.ts";
import { sleep } from "../../lib/timers.ts";
import type { PlainCue } from "../../lib/vtt/write.ts";
import { serviceUrl } from "../service-url.ts";
import { cuesOf, shifted, vttOf } from "./cues.ts";
import { type AudioRequest, postAudio } from "./post-audio.ts";
import { type SpeechAudio, type Transcriber, TranscriptionFailed, type TranscriptionService } from "./transcriber.ts";
import { BYTES_PER_SECOND, type PieceLimits, piecesOf } from "./wav.ts";

const ATTEMPTS = 4;
const BACKOFF_MS = 1000;
/** 19.2 MB as WAV; OpenAI accepts 25 MB. */
const LIMITS: PieceLimits = { mostSeconds: 600, searchSeconds: 20 };

export type OpenAiOptions = {
  base: string;
  key: string | undefined;
  model: string;
  /** Timeout of one request. */
  timeoutMs: number;
  limits?: PieceLimits;
};

/**
 * Any server with OpenAI's `POST /v1/audio/transcriptions` (platform.openai.com/docs/api-reference/audio), and
 * whisper.cpp's server, whose URL ends in `/inference` and which has the same fields. 429, 5xx and network errors are
 * retried, as late as Retry-After says.
 */
export function openai({ base, key, model, timeoutMs, limits = LIMITS }: OpenAiOptions): Transcriber {
  const isInference = new URL(base).pathname.endsWith("/inference");
  const url = isInference ? new URL(base) : serviceUrl(base, "/v1/audio/transcriptions");
  return {
    async transcribe({ wavPath, language, signal }: SpeechAudio) {
      const fields = { model, language: primaryLanguage(language), response_format: "vtt", temperature: "0" };
      const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const pieces = await piecesOf(wavPath, limits);
      const start = pieces[0]?.from ?? 0;
      const all: PlainCue[] = [];
      // Sequentially: a self-hosted server processes one request at a time, and others limit requests.
      for (const samples of pieces) {
        const answer = await ask({ url, headers, fields, wavPath, samples, signal, timeoutMs });
        const [startMs, endMs] = [samples.from, samples.to].map((at) =>
          Math.round(((at - start) / BYTES_PER_SECOND) * 1000),
        ) as [number, number];
        all.push(...shifted(await cuesOf(answer), { startMs, endMs }));
      }
      return vttOf(all);
    },
  };
}

export const openaiService: TranscriptionService = {
  needs: ["transcribe_url", "transcribe_key"],
  open({ transcribe_url, transcribe_key: key, transcribe_model: model, transcribe_timeout_seconds: seconds }) {
    // With a key and no URL, the company's own API is meant.
    const base = transcribe_url ?? (key === undefined ? undefined : "https://api.openai.com");
    return base === undefined ? null : openai({ base, key, model, timeoutMs: seconds * 1000 });
  },
};

async function ask(request: AudioRequest): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const answer = await postAudio(request);
    if ("text" in answer) return answer.text;
    // A Retry-After beyond our timeout means no retry.
    const isLate = (answer.retryAfterMs ?? 0) > request.timeoutMs;
    if (!answer.retry || isLate || attempt >= ATTEMPTS)
      throw new TranscriptionFailed(`The transcription service ${answer.told}.`);
    const backoff = BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
    await sleep(answer.retryAfterMs ?? backoff, undefined, { signal: request.signal });
  }
}
