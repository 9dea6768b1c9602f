import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { directoryOf } from "#model/object-keys.ts";
import { heartbeatSeconds } from "./lease.ts";
import type { SideLease } from "./side-lease.ts";

type Leased = { path: string; row: SideLease; token: string; prefix: string; local: (key: string) => string | null };

/** What the contracts of the work of side-lease.ts have in common; `path` is that of the callbacks. */
export function sideContract(app: App, { path, row, token, prefix, local }: Leased) {
  const callbacks = `${app.baseUrl()}${path}/${row.id}`;
  return {
    schema_version: 1 as const,
    lease: {
      token,
      expires_at: iso(row.leaseExpiresAt ?? 0),
      heartbeat_interval_seconds: heartbeatSeconds(app),
    },
    artifacts: { sign_url: `${callbacks}/artifacts`, local_path: local(directoryOf(prefix)) },
    callbacks: {
      heartbeat_url: `${callbacks}/heartbeat`,
      complete_url: `${callbacks}/complete`,
      fail_url: `${callbacks}/fail`,
      release_url: `${callbacks}/release`,
    },
    early_playback: false,
  };
}

/** The answer to a heartbeat. */
export const renewed = ({ leaseExpiresAt }: SideLease) =>
  ({ status: "running", lease_expires_at: iso(leaseExpiresAt), cancel_requested: false }) as const;
