import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { abortAfter, runInSlices, setTimeout } from "#lib/base";
import { BOTTOM_ROW, type ShownCaption } from "#lib/closed-captions";
import { shapedCues } from "#lib/subtitles";
import { WrittenCaptions } from "#live/captions/written-captions.ts";
import type { SegmentEvent } from "#live/playlists/events.ts";
import { INIT_NAME } from "#media/arguments.ts";
import { run, untrustedInput } from "#media/ffmpeg.ts";
import type { Transcriber } from "#platform/outbound/transcribe/transcriber.ts";
import type { LiveStream } from "../registry.ts";

/** Speech is recognized in pieces of at least this length: shorter ones cut more words. */
const WINDOW_SECONDS = 4;
/** What is older when a machine is too slow is left out: it would come too late. */
const LONGEST_SECONDS = 12;
const LIMIT_MS = 60_000;
/** How long a caption is shown. */
const SHOWN_MS = { least: 1000, most: 7000 };
/** How far captions may come after the speech, while others before them are shown. */
const MOST_BEHIND_MS = 8000;
/** How long the last seconds of a stream may take. The recording waits for them, somewhat longer. */
const FINISH_MS = 15_000;
const RATE = 16_000;
const HEADER_BYTES = 44;
const FOLDER = "speech";

export type SpeechOptions = {
  stream: LiveStream;
  /** Name of its track of audio. */
  track: string;
  languages: readonly string[];
  transcriber: Transcriber;
  ffmpeg: string;
  memoryBytes: number | undefined;
  /** Throws when the disk is full. */
  admit: () => Promise<void>;
  /** Whether the tenant may use more minutes: what is said meanwhile is left out. */
  mayRecognize: () => Promise<boolean>;
  /** So many milliseconds were recognized, in one of the languages. */
  onRecognized: (ms: number) => void;
  show: (caption: ShownCaption) => void;
  onError: (error: unknown) => void;
};

/** In URLs and playlists. */
export const serviceOf = (language: string): string => `speech-${language}`;

/**
 * Recognizes the speech of a running stream, some seconds at once. Viewers see a caption from the end of what is published
 * when it is recognized: segments of captions never change. The recording gets the time at which it was said.
 */
export class StreamSpeech {
  readonly #options: SpeechOptions;
  readonly #written: WrittenCaptions;
  readonly #ended = new AbortController();
  /** The end of what is shown last, by language. */
  readonly #shownUntil = new Map<string, number>();
  #pending: SegmentEvent[] = [];
  #isBusy = false;
  #work: Promise<void> = Promise.resolve();
  /** Nothing follows what is pending. */
  #isLast = false;

  constructor(options: SpeechOptions) {
    this.#options = options;
    this.#written = new WrittenCaptions(options.stream.folder, options.admit);
  }

  get track(): string {
    return this.#options.track;
  }

  /** A segment of its track is complete. */
  add(segment: SegmentEvent): void {
    this.#pending.push(segment);
    if (!this.#isBusy) this.#work = this.#recognizeAll();
  }

  /** The stream has ended. Resolves when the captions of its last seconds are written, or cannot be in time. */
  async finish(): Promise<void> {
    this.#isLast = true;
    const timer = setTimeout(() => this.#ended.abort(), FINISH_MS);
    await this.#work;
    await this.#recognizeAll();
    clearTimeout(timer);
    this.#ended.abort();
    await this.#written.settled();
  }

  end(): void {
    this.#ended.abort();
  }

  async #recognizeAll(): Promise<void> {
    this.#isBusy = true;
    const isEnough = () => (this.#isLast ? this.#pending.length > 0 : secondsOf(this.#pending) >= WINDOW_SECONDS);
    while (isEnough() && !this.#ended.signal.aborted) {
      const segments = this.#pending;
      this.#pending = [];
      while (secondsOf(segments) > LONGEST_SECONDS && segments.length > 1) segments.shift();
      try {
        if (await this.#options.mayRecognize()) await this.#recognize(segments);
      } catch (error) {
        if (!this.#ended.signal.aborted) this.#options.onError(error);
      }
    }
    this.#isBusy = false;
  }

  async #recognize(segments: readonly SegmentEvent[]): Promise<void> {
    const { stream, languages, transcriber, onRecognized } = this.#options;
    const cwd = join(stream.folder, FOLDER);
    await mkdir(cwd, { recursive: true, mode: 0o700 });
    const audio = await this.#audioOf(segments, cwd);
    const startMs = Math.round((segments[0] as SegmentEvent).startSeconds * 1000);
    for (const language of languages) {
      const signal = AbortSignal.any([this.#ended.signal, abortAfter(LIMIT_MS)]);
      const { utterances } = await transcriber.transcribe({ ...audio, language, cwd, signal });
      onRecognized(Math.round(audio.durationSeconds * 1000));
      const sorted = utterances.toSorted((one, other) => one.startMs - other.startMs);
      const cues = await runInSlices(shapedCues(sorted));
      for (const [index, cue] of cues.entries()) {
        const caption = { service: serviceOf(language), language, text: cue.lines.join("\n"), row: BOTTOM_ROW };
        this.#written.add({ ...caption, startMs: startMs + cue.startMs, endMs: startMs + cue.endMs });
        // Not for longer than it takes to say it: captions would come later and later.
        const nextMs = cues[index + 1]?.startMs ?? Math.round(audio.durationSeconds * 1000);
        const shownMs = Math.min(cue.endMs, Math.max(nextMs, cue.startMs)) - cue.startMs;
        this.#show(language, caption, { spokenAtMs: startMs + cue.startMs, shownMs });
      }
    }
  }

  /** The segments as a WAV file, as engines read it. */
  async #audioOf(segments: readonly SegmentEvent[], cwd: string) {
    const { stream, track, ffmpeg, memoryBytes, admit } = this.#options;
    const input = join(cwd, "window.mp4");
    const wavPath = join(cwd, "window.wav");
    const files = [INIT_NAME, ...segments.map(({ name }) => name)];
    await admit();
    await writeFile(
      input,
      Buffer.concat(await Promise.all(files.map((name) => readFile(join(stream.folder, track, name))))),
    );
    await rm(wavPath, { force: true });
    await run(ffmpeg, {
      args: [
        ...["-nostdin", "-hide_banner", "-y", "-loglevel", "error", ...untrustedInput(input), "-map", "0:a:0"],
        ...["-ac", "1", "-ar", String(RATE), "-c:a", "pcm_s16le", "-map_metadata", "-1", "-fflags", "+bitexact"],
        ...["-f", "wav", `file:${wavPath}`],
      ],
      cwd,
      signal: this.#ended.signal,
      timeLimitMs: LIMIT_MS,
      memoryBytes,
      reads: [input],
    });
    const { size } = await stat(wavPath);
    return { wavPath, durationSeconds: Math.max(0, size - HEADER_BYTES) / (2 * RATE) };
  }

  #show(
    language: string,
    caption: Omit<ShownCaption, "startMs" | "endMs">,
    { spokenAtMs, shownMs }: { spokenAtMs: number; shownMs: number },
  ): void {
    const { stream, show } = this.#options;
    const edgeMs = Math.ceil((stream.timeline.captioned?.endSeconds ?? 0) * 1000);
    const startMs = Math.max(edgeMs, this.#shownUntil.get(language) ?? 0);
    // What comes later than the speech after it is not read.
    if (startMs > edgeMs && startMs - spokenAtMs > MOST_BEHIND_MS) return;
    const endMs = startMs + Math.min(Math.max(shownMs, SHOWN_MS.least), SHOWN_MS.most);
    this.#shownUntil.set(language, endMs);
    show({ ...caption, startMs, endMs });
  }
}

const secondsOf = (segments: readonly SegmentEvent[]) =>
  segments.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0);
