import { userInfo } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Config } from "../src/config/load.ts";
import { ensureDataDir, hasSecrets, loadSecrets } from "../src/config/secrets.ts";
import { readServerUrl } from "../src/config/server-file.ts";
import { describeConnectionError } from "../src/lib/connection-errors.ts";
import { UserError } from "../src/lib/errors.ts";
import { createLog } from "../src/log.ts";
import { type Opened, openApp } from "../src/open.ts";
import { DataDirInUse, holderOf, isLocked } from "../storage/db/lock.ts";

const PATIENCE_MS = 10_000;
const LOOK_AGAIN_MS = 50;

export type Admin = {
  readonly address: string;
  /** Asks the interface with the admin token. Throws a UserError with the server's own words. */
  call<T>(method: string, path: string, body?: unknown): Promise<T>;
  close(): Promise<void>;
};

/**
 * The way to the data: through the server that holds it, else through the same interface in this process. One set of
 * rules for both, and the database never has two owners.
 */
export async function connect(config: Config): Promise<Admin> {
  ensureDataDir(config.data_dir);
  const log = await createLog({
    log_level: config.log_level === "info" ? "warn" : config.log_level,
    log_format: config.log_format,
  });
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    if (isLocked(config.data_dir)) {
      const address = serverOf(config);
      if (address !== null) return adminOf(config, address);
    } else {
      const opened = await openUnlessTaken(config, log);
      if (opened) {
        const address = "http://vodbox.internal";
        return {
          address,
          call: caller(opened.server.fetch, address, opened.app.secrets.admin_token),
          close: opened.close,
        };
      }
    }
    // Another command, or a server on its way up or down: either is over soon.
    if (performance.now() > deadline)
      throw new UserError(`A vodbox is starting or stopping on ${config.data_dir}; try again in a moment.`);
    await sleep(LOOK_AGAIN_MS);
  }
}

/** Null when another command was faster, after this one had looked. */
async function openUnlessTaken(config: Config, log: Logger): Promise<Opened | null> {
  try {
    return await openApp(config, { log });
  } catch (error) {
    if (error instanceof DataDirInUse) return null;
    throw error;
  }
}

/** The server at `address`, with the admin token of these settings or this data directory. */
export function adminOf(config: Config, address: string): Admin {
  const token = config.admin_token ?? (hasSecrets(config) ? loadSecrets(config).admin_token : null);
  if (token === null)
    throw new UserError(
      `There is no admin token in ${config.data_dir}; set VODBOX_ADMIN_TOKEN to that of ${address}, or name its data directory with --data.`,
    );
  return {
    address,
    call: caller((request) => fetch(request), address, token),
    close: async () => {},
  };
}

/**
 * Where the server on this data directory listens; null when what holds it is none, or not yet. One that was killed
 * leaves its file behind, and on its port may be anybody: only the lock's holder gets the admin token.
 */
const serverOf = (config: Config): string | null => readServerUrl(config, holderOf(config.data_dir));

/** For the audit log: who the machine says sits here. */
function whoami(): string {
  try {
    return `cli:${encodeURI(userInfo().username)}`;
  } catch {
    // A process in a container may have a number and no name.
    return `cli:${process.getuid?.() ?? "unknown"}`;
  }
}

function caller(send: (request: Request) => Promise<Response>, base: string, token: string): Admin["call"] {
  return async <T>(method: string, path: string, body?: unknown) => {
    const request = new Request(`${base}${path}`, {
      method,
      headers: { "x-svc-admin-token": token, "x-svc-operator": whoami(), "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const response = await send(request).catch((error: Error) => {
      throw new UserError(describeConnectionError(base, error));
    });
    const text = await response.text();
    const answer: unknown = text === "" ? undefined : JSON.parse(text);
    if (response.ok) return answer as T;
    const { error = response.statusText } = (answer ?? {}) as { error?: string };
    throw new UserError(error);
  };
}
