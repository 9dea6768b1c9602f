import type { TestApp } from "./app.ts";
import type { Answer, CallOptions } from "./client.ts";

/** What a client of the gateway says, in the words of MediaMTX. */
export type Client = { action?: unknown; path?: unknown; [field: string]: unknown };

/** What MediaMTX posts, by the versions that its public configuration file documents. */
export const PAYLOADS: readonly [version: string, fields: Record<string, unknown>][] = [
  [
    "1.0, externalAuthenticationURL",
    { ip: "203.0.113.7", user: "", password: "", path: "", protocol: "rtmp", id: null, action: "", query: "" },
  ],
  [
    "1.9, authMethod: http",
    {
      ...{ user: "", password: "", ip: "203.0.113.7", action: "", path: "", protocol: "srt" },
      ...{ id: "0b5e8c43-5b7e-4a55-9c0c-3a5d7f5f1a11", query: "" },
    },
  ],
  [
    "1.12, with the client's bearer token",
    {
      ...{ user: "", password: "", token: "", ip: "2001:db8::7", action: "", path: "", protocol: "webrtc" },
      ...{ id: "0b5e8c43-5b7e-4a55-9c0c-3a5d7f5f1a11", query: "", userAgent: "OBS/31" },
    },
  ],
];
const [, NEWEST] = PAYLOADS.at(-1) as (typeof PAYLOADS)[number];

/** The gateway of a test: it asks as MediaMTX does, its own token in the header unless told. */
export function gatewayOf(app: TestApp) {
  const token = () => app.opened.app.secrets.live_token;
  const ask = (client: Client, options?: CallOptions & { at?: string }): Promise<Answer> => {
    const { at = "", ...rest } = options ?? { headers: { "x-svc-live-token": token() } };
    return app.call("POST", `/api/v1/live/auth${at}`, { body: { ...NEWEST, ...client }, ...rest });
  };
  return {
    token,
    ask,
    /** The status alone. */
    may: async (client: Client) => (await ask(client)).status,
  };
}
