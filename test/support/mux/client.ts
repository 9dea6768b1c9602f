import Mux, { APIError } from "@mux/mux-node";
import type { TestApp } from "../app.ts";
import { faultsOf, methodOf } from "./shapes.ts";

/** Mux's own client, as its users configure it for vodbox. Requests are not repeated. */
export const muxClient = (app: TestApp, key: string): Mux =>
  new Mux({
    tokenId: "any",
    tokenSecret: key,
    baseURL: "http://vodbox.test/mux",
    maxRetries: 0,
    async fetch(url, init) {
      const request = new Request(url as string, init as RequestInit);
      const response = await app.opened.server.fetch(request);
      if (response.ok) await requireShape(request, response.clone());
      return response;
    },
  });

/** Every response has the shape that the types of Mux's client say. */
async function requireShape({ method, url }: Request, response: Response): Promise<void> {
  const path = new URL(url).pathname.replace("/mux", "");
  const called = methodOf(method, path);
  if (!called) return;
  const faults = faultsOf(called, await response.json());
  if (faults.length > 0) throw new Error(`${called.name} (${method} ${path}):\n${faults.join("\n")}`);
}

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
