import type { PublishDecision, PublishRequest } from "../../src/live/publish/types.ts";
import { DEFAULT_LIMITS, type RtmpLimits } from "../../src/live/rtmp/limits.ts";
import { createRtmpServer, type KeyPair, type RtmpServer } from "../../src/live/rtmp/server.ts";
import { atEnd } from "../support/folder.ts";
import { type LogLine, Recorder } from "./recorder.ts";

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
