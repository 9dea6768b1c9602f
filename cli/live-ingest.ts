import { UserError } from "#lib/base";
import type { FromIngest, ToIngest } from "#live/ingest/messages.ts";
import { runIngest } from "#live/ingest/run-ingest.ts";

/** The process that receives live streams: started by `serve`, with which it speaks over the IPC channel. */
export async function liveIngestCommand(): Promise<void> {
  if (!process.send) throw new UserError("live-ingest is started by vodbox serve.", 2);
  // The files are complete up to the last part, and the next start of the server recovers them.
  process.once("disconnect", () => process.exit(1));
  // The server ends it, when a signal reaches all processes of a terminal.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
  const sent = new Set<Promise<void>>();
  await runIngest({
    send(message: FromIngest) {
      const { promise, resolve } = Promise.withResolvers<void>();
      sent.add(promise);
      process.send?.(message, undefined, undefined, () => {
        sent.delete(promise);
        resolve();
      });
    },
    onMessage: (receive) => void process.on("message", (message: ToIngest) => receive(message)),
  });
  await Promise.all(sent);
  process.exit(0);
}
