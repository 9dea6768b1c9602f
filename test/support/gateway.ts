import type { TestApp } from "./app.ts";
import type { Answer, CallOptions } from "./client.ts";

/** A client of the gateway, in the terms of MediaMTX. */
export type Client = { action?: unknown; path?: unknown; [field: string]: unknown };

/** The request of MediaMTX, by the versions that its public configuration file documents. */
export const PAYLOADS: readonly [version: string, fields: Record<string, unknown>][] = [
  [
    "1.0, externalAuthenticationURL",
    { ip: "203.0.113.7", user: "", password: "", path: "", protocol: "rtmp", id: null, action: "", query: "" },
  ],
  [
    "1.9, authMethod: http",
    {
      user: "",
      password: "",
      ip: "203.0.113.7",
      action: "",
      path: "",
      protocol: "srt",
      id: "0b5e8c43-5b7e-4a55-9c0c-3a5d7f5f1a11",
      query: "",
    },
  ],
  [
    "1.12, with the client's bearer token",
    {
      user: "",
      password: "",
      token: "",
      ip: "2001:db8::7",
      action: "",
      path: "",
      protocol: "webrtc",
      id: "0b5e8c43-5b7e-4a55-9c0c-3a5d7f5f1a11",
      query: "",
      userAgent: "OBS/31",
    },
  ],
];
const [, NEWEST] = PAYLOADS.at(-1) as (typeof PAYLOADS)[number];

/** The gateway of a test: it sends MediaMTX's requests, by default with its token in the header. */
export function gatewayOf(app: TestApp) {
  const token = () => app.opened.app.secrets.live_token;
  const ask = (client: Client, options?: CallOptions & { at?: string }): Promise<Answer> => {
    const { at = "", ...rest } = options ?? { headers: { "x-svc-live-token": token() } };
    return app.call("POST", `/api/v1/live/auth${at}`, { body: { ...NEWEST, ...client }, ...rest });
  };
  return {
    token,
    ask,
    /** Only the status. */
    may: async (client: Client) => (await ask(client)).status,
  };
}
