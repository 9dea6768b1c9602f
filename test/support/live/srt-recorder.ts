import type { SrtLimits } from "#src/lib/srt/limits.ts";
import { createSrtServer, type SrtServer } from "#src/lib/srt/server.ts";
import { atEnd } from "../folder.ts";
import { type Authorize, recordPublishes } from "./recorder.ts";

export type SrtTestServer = { server: SrtServer; port: number } & Omit<ReturnType<typeof recordPublishes>, "options">;

/** A listener that accepts every publish unless `authorize` decides otherwise; closed at the end of the test. */
export async function startSrt(
  options: { limits?: Partial<SrtLimits>; passphrase?: string; authorize?: Authorize } = {},
): Promise<SrtTestServer> {
  const { options: recording, ...recorded } = recordPublishes(options.authorize);
  const server = createSrtServer({
    limits: options.limits ?? {},
    passphrase: options.passphrase ?? null,
    ...recording,
  });
  await server.listen(0, "127.0.0.1");
  atEnd(() => server.close());
  return { server, port: server.port, ...recorded };
}
