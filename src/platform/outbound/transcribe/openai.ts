import { primaryLanguage, sleep } from "#lib/base";
import { serviceUrl } from "../service-url.ts";
import { type AudioRequest, postAudio } from "./post-audio.ts";
import { readAnswer, shifted } from "./read-answer.ts";
import type { Utterance } from "./speech.ts";
import { type SpeechAudio, type Transcriber, TranscriptionFailed, type TranscriptionService } from "./transcriber.ts";
import { BYTES_PER_SECOND, type PieceLimits, piecesOf } from "./wav.ts";

const ATTEMPTS = 4;
const BACKOFF_MS = 1000;
/** 19.2 MB as WAV; OpenAI accepts 25 MB. */
const LIMITS: PieceLimits = { mostSeconds: 600, searchSeconds: 20 };

type Fields = AudioRequest["fields"];
/** What services accept: times of words, times of segments, or nothing but WebVTT. */
const FORMATS: readonly Fields[] = [
  [
    ["response_format", "verbose_json"],
    ["timestamp_granularities[]", "word"],
    ["timestamp_granularities[]", "segment"],
  ],
  [["response_format", "verbose_json"]],
  [["response_format", "vtt"]],
];

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
  // whisper.cpp's server takes English for granted without this field.
  const undetermined = isInference ? "auto" : undefined;
  // What the service has accepted: long audio is sent in many parts, each of which would be refused first.
  let format = 0;
  return {
    async transcribe({ wavPath, language, signal, onProgress }: SpeechAudio) {
      const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const spoken = language === null ? undetermined : primaryLanguage(language);
      const common: Fields = [
        ["model", model],
        ...(spoken ? [["language", spoken] as const] : []),
        ["temperature", "0"],
      ];
      const pieces = await piecesOf(wavPath, limits);
      const start = pieces[0]?.from ?? 0;
      const all: Utterance[] = [];
      const detected = new Map<string, number>();
      // Sequentially: a self-hosted server processes one request at a time, and others limit requests.
      for (const [index, samples] of pieces.entries()) {
        const request = { url, headers, wavPath, samples, signal, timeoutMs };
        const answer = await ask((each) => ({ ...request, fields: [...common, ...each] }), format);
        format = answer.format;
        const [startMs, endMs] = [samples.from, samples.to].map((at) =>
          Math.round(((at - start) / BYTES_PER_SECOND) * 1000),
        ) as [number, number];
        const speech = await readAnswer(answer.text);
        const utterances = shifted(speech.utterances, { startMs, endMs });
        if (speech.language !== null && utterances.length > 0)
          detected.set(speech.language, (detected.get(speech.language) ?? 0) + endMs - startMs);
        all.push(...utterances);
        onProgress?.((index + 1) / pieces.length);
      }
      // The language of most of the audio.
      const [most] = [...detected].sort((one, other) => other[1] - one[1]);
      return { language: most?.[0] ?? null, utterances: all };
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

/** Asks in the format `first`, or in the next one that the service accepts. */
async function ask(
  requestWith: (fields: Fields) => AudioRequest,
  first: number,
): Promise<{ text: string; format: number }> {
  for (let format = first, attempt = 1; ; attempt++) {
    const request = requestWith(FORMATS[format] as Fields);
    const answer = await postAudio(request);
    if ("text" in answer) return { text: answer.text, format };
    if (answer.refused && format < FORMATS.length - 1) {
      format++;
      attempt = 0;
      continue;
    }
    // A Retry-After beyond our timeout means no retry.
    const isLate = (answer.retryAfterMs ?? 0) > request.timeoutMs;
    if (!answer.retry || isLate || attempt >= ATTEMPTS)
      throw new TranscriptionFailed(`The transcription service ${answer.fault}.`);
    const backoff = BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
    await sleep(answer.retryAfterMs ?? backoff, undefined, { signal: request.signal });
  }
}
