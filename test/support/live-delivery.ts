import { expect } from "vitest";
import type { TestApp } from "./app.ts";

export const LIVE_BASE = "http://vodbox.test";
export const LIVE_CHANNELS = "/api/v1/live/channels";

/** A response, and the URL that it is from. */
export type Got = { status: number; headers: Headers; bytes: Buffer; text: string; url: string };

/** A request of a player. `path` may be relative to `from`. */
export async function getFrom(
  app: TestApp,
  path: string,
  { from = LIVE_BASE, ...init }: RequestInit & { from?: string } = {},
): Promise<Got> {
  const url = new URL(path, from).href;
  const response = await app.opened.server.fetch(new Request(url, init));
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes, text: bytes.toString(), url };
}

/** Status and code of an error. */
export const codeOf = ({ status, text }: Got) => [status, JSON.parse(text).code];

/** A channel that is public unless `fields` say otherwise. */
export async function createChannel(app: TestApp, key: string, fields: Record<string, unknown> = {}) {
  const body = { channel: "stage", playback_policy: "public", ...fields };
  const made = await app.call("POST", LIVE_CHANNELS, { key, body });
  expect(made.status).toBe(201);
  return made.body;
}
