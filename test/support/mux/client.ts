import Mux, { APIError } from "@mux/mux-node";
import type { TestApp } from "../app.ts";

/** Mux's own client, as its users configure it for vodbox. Requests are not repeated. */
export const muxClient = (app: TestApp, key: string): Mux =>
  new Mux({
    tokenId: "any",
    tokenSecret: key,
    baseURL: "http://vodbox.test/mux",
    maxRetries: 0,
    fetch: async (url, init) => app.opened.server.fetch(new Request(url as string, init as RequestInit)),
  });

/** Status, type and messages of a refusal. */
export async function refusal(work: Promise<unknown>) {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof APIError)) throw new Error(`No error of the API: ${error}`);
  const { type, messages } = (error.error as { error: { type: string; messages: string[] } }).error;
  return { status: error.status, type, messages };
}
