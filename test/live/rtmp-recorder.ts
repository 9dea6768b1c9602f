import type {
  PublishDecision,
  PublishedStream,
  PublishRequest,
  PublishSink,
  StreamMetadata,
} from "../../src/live/publish/types.ts";
import { DEFAULT_LIMITS, type RtmpLimits } from "../../src/live/rtmp/limits.ts";
import { createRtmpServer, type KeyPair, type RtmpServer } from "../../src/live/rtmp/server.ts";
import type { LiveSample, StreamEnd, TrackConfig } from "../../src/live/samples.ts";
import { atEnd } from "../support/folder.ts";

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
    const noted = () => {
      for (const wake of this.#waiting) wake();
    };
    this.sink = {
      onStart: (stream) => {
        this.stream = stream;
      },
      onConfig: (config) => {
        this.configs.push(config);
        noted();
      },
      onSample: (sample) => {
        this.samples.push(sample);
        noted();
      },
      onMetadata: (metadata) => {
        this.metadata.push(metadata);
        noted();
      },
      onEnd: (end) => {
        this.ends.push(end);
        resolve(end);
      },
    };
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

export type TestServer = {
  server: RtmpServer;
  port: number;
  requests: PublishRequest[];
  /** One for each accepted publish. */
  recorders: Recorder[];
  log: LogLine[];
};

/** A server that accepts every publish unless `authorize` decides otherwise; closed at the end of the test. */
export async function startRtmp(
  options: {
    limits?: Partial<RtmpLimits>;
    tls?: KeyPair;
    /** Null: accept with a new recorder. */
    authorize?: (request: PublishRequest) => Promise<PublishDecision | null>;
  } = {},
): Promise<TestServer> {
  const requests: PublishRequest[] = [];
  const recorders: Recorder[] = [];
  const log: LogLine[] = [];
  const { tls, limits } = options;
  const server = createRtmpServer({
    limits: { closeTimeoutMs: Math.min(500, DEFAULT_LIMITS.closeTimeoutMs), ...limits },
    ...(tls && { tls }),
    log: (level, message, fields) => log.push({ level, message, fields }),
    authorize: async (request) => {
      requests.push(request);
      const decision = await options.authorize?.(request);
      if (decision) return decision;
      const recorder = new Recorder();
      recorders.push(recorder);
      return { accepted: true, sink: recorder.sink };
    },
  });
  await server.listen(0, "127.0.0.1");
  atEnd(() => server.close());
  return { server, port: server.port, requests, recorders, log };
}
