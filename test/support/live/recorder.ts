import type { ConvertibleAudio, LiveSample, StreamEnd, TrackConfig } from "#src/lib/codecs/samples.ts";
import type {
  Log,
  PublishDecision,
  PublishedStream,
  PublishRequest,
  PublishSink,
  StreamMetadata,
} from "#src/lib/publishing/types.ts";

/** What a sink has received. */
export class Recorder {
  readonly configs: TrackConfig[] = [];
  readonly samples: LiveSample[] = [];
  readonly metadata: StreamMetadata[] = [];
  readonly ends: StreamEnd[] = [];
  stream: PublishedStream | null = null;
  readonly ended: Promise<StreamEnd>;
  readonly sink: PublishSink;
  readonly #waiting = new Set<() => void>();

  constructor() {
    const { promise, resolve } = Promise.withResolvers<StreamEnd>();
    this.ended = promise;
    this.sink = {
      onStart: (stream) => {
        this.stream = stream;
      },
      onConfig: (config) => {
        this.configs.push(config);
        this.#noted();
      },
      onSample: (sample) => {
        this.samples.push(sample);
        this.#noted();
      },
      onMetadata: (metadata) => {
        this.metadata.push(metadata);
        this.#noted();
      },
      onEnd: (end) => {
        this.ends.push(end);
        resolve(end);
      },
    };
  }

  #noted(): void {
    for (const wake of this.#waiting) wake();
  }

  /** From now on, audio of other codecs is recorded. */
  takeConvertible(): ConvertibleAudio[] {
    const taken: ConvertibleAudio[] = [];
    this.sink.onConvertible = (audio) => {
      taken.push(audio);
      this.#noted();
    };
    return taken;
  }

  /** Resolves once `isDone`, which is evaluated after each call of the sink. */
  async until(isDone: () => boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = () => {
      if (isDone()) resolve();
    };
    this.#waiting.add(check);
    check();
    await promise;
    this.#waiting.delete(check);
  }
}

export type LogLine = { level: string; message: string; fields: Record<string, string | number> };

/** Null: accept with a new recorder. */
export type Authorize = (request: PublishRequest) => Promise<PublishDecision | null>;

/** What a protocol server under test has done; `options` are its own that record it. */
export function recordPublishes(authorize?: Authorize) {
  const requests: PublishRequest[] = [];
  /** One for each accepted publish. */
  const recorders: Recorder[] = [];
  const log: LogLine[] = [];
  const record: Log = (level, message, fields) => void log.push({ level, message, fields });
  const options = {
    log: record,
    authorize: async (request: PublishRequest): Promise<PublishDecision> => {
      requests.push(request);
      const decision = await authorize?.(request);
      if (decision) return decision;
      const recorder = new Recorder();
      recorders.push(recorder);
      return { accepted: true, sink: recorder.sink };
    },
  };
  return { requests, recorders, log, options };
}
