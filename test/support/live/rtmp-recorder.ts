import { DEFAULT_LIMITS, type RtmpLimits } from "#src/lib/rtmp/limits.ts";
import { createRtmpServer, type KeyPair, type RtmpServer } from "#src/lib/rtmp/server.ts";
import { atEnd } from "../folder.ts";
import { type Authorize, recordPublishes } from "./recorder.ts";

export type TestServer = { server: RtmpServer; port: number } & Omit<ReturnType<typeof recordPublishes>, "options">;

/** A server that accepts every publish unless `authorize` decides otherwise; closed at the end of the test. */
export async function startRtmp(
  options: { limits?: Partial<RtmpLimits>; tls?: KeyPair; authorize?: Authorize; port?: number } = {},
): Promise<TestServer> {
  const { tls, limits } = options;
  const { options: recording, ...recorded } = recordPublishes(options.authorize);
  const server = createRtmpServer({
    limits: { closeTimeoutMs: Math.min(500, DEFAULT_LIMITS.closeTimeoutMs), ...limits },
    ...(tls && { tls }),
    ...recording,
  });
  await server.listen(options.port ?? 0, "127.0.0.1");
  atEnd(() => server.close());
  return { server, port: server.port, ...recorded };
}
