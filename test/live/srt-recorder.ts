import type { PublishDecision, PublishRequest } from "../../src/live/publish/types.ts";
import type { SrtLimits } from "../../src/live/srt/limits.ts";
import { createSrtServer, type SrtServer } from "../../src/live/srt/server.ts";
import { atEnd } from "../support/folder.ts";
import { type LogLine, Recorder } from "./recorder.ts";

export type SrtTestServer = {
  server: SrtServer;
  port: number;
  requests: PublishRequest[];
  /** One for each accepted publish. */
  recorders: Recorder[];
  log: LogLine[];
};

/** A listener that accepts every publish unless `authorize` decides otherwise; closed at the end of the test. */
export async function startSrt(
  options: {
    limits?: Partial<SrtLimits>;
    passphrase?: string;
    /** Null: accept with a new recorder. */
    authorize?: (request: PublishRequest) => Promise<PublishDecision | null>;
  } = {},
): Promise<SrtTestServer> {
  const requests: PublishRequest[] = [];
  const recorders: Recorder[] = [];
  const log: LogLine[] = [];
  const server = createSrtServer({
    limits: options.limits ?? {},
    passphrase: options.passphrase ?? null,
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
