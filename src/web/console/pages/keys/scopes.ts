import type { Params } from "#clients/typescript/types.ts";

type Scope = NonNullable<Params<"createApiKey">["body"]["scopes"]>[number];

/** The scopes of the API's description with the names of their explanations: none is missing or unknown. */
const EXPLANATIONS = {
  "assets:read": "readAssets",
  "assets:write": "writeAssets",
  "playback:read": "readPlayback",
  "billing:write": "writeBilling",
  "api_keys:read": "readKeys",
  "api_keys:write": "writeKeys",
  "webhooks:read": "readWebhooks",
  "webhooks:write": "writeWebhooks",
} as const satisfies Record<Scope, string>;

export const scopes = Object.entries(EXPLANATIONS) as [Scope, (typeof EXPLANATIONS)[Scope]][];
