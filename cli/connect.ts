import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import type { Logger } from "pino";
import { isRestoreUnfinished } from "#features/operations/backup/resume-restore.ts";
import { sleep, UserError, withoutTrailing } from "#lib/base";
import { describeConnectionError } from "#lib/network";
import { databaseFileOf } from "#platform/config/database-file.ts";
import type { Config } from "#platform/config/load.ts";
import { lostDatabase } from "#platform/config/lost-database.ts";
import { ensureDataDir, hasSecrets, loadSecrets } from "#platform/config/secrets.ts";
import { runningServerUrl } from "#platform/config/server-file.ts";
import { createLog } from "#src/log.ts";
import { type Opened, openApp } from "#src/open.ts";
import { DataDirInUse, isLocked } from "#storage/db/lock.ts";

const PATIENCE_MS = 10_000;
const LOOK_AGAIN_MS = 50;

export type Admin = {
  readonly address: string;
  /** Credential and operator, for requests that are not made with `call`. */
  readonly headers: Record<string, string>;
  /** Calls the API with the admin token. `body`: bytes of a file, or what is sent as JSON. Throws a UserError with the server's message. */
  call<T>(method: string, path: string, body?: unknown): Promise<T>;
  close(): Promise<void>;
};

export type ConnectOptions = {
  /** URL of a server. Without it VODBOX_SERVER counts, except where a command works only on a local directory. */
  server?: string | undefined;
  isLocal?: boolean;
  /** Whether a data directory may be created. */
  mayCreate?: boolean;
};

/**
 * Access to the data: through the named server, else through the server that holds the data directory, else through the
 * same API in this process. All follow the same rules, and the database never has two owners. Throws a UserError that
 * names the data directory when there is none and it may not be created.
 */
export async function connect(config: Config, options: ConnectOptions = {}): Promise<Admin> {
  const named = options.server ?? (options.isLocal ? undefined : serverOfEnvironment());
  if (named !== undefined) return remoteAdmin(config, serverUrl(named));
  if (!options.mayCreate) requireData(config);
  ensureDataDir(config.data_dir);
  const log = await createLog({
    log_level: config.log_level === "info" ? "warn" : config.log_level,
    log_format: config.log_format,
  });
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    if (isLocked(config.data_dir)) {
      const address = runningServerUrl(config);
      if (address !== null) return adminOf(config, address);
    } else {
      const opened = await openUnlessTaken(config, log);
      if (opened) {
        const address = "http://vodbox.internal";
        const headers = headersOf(opened.app.secrets.admin_token);
        return { address, headers, call: caller(opened.server.fetch, address, headers), close: opened.close };
      }
    }
    // Another command, or a server that is starting or stopping: either ends soon.
    if (performance.now() > deadline)
      throw new UserError(`vodbox is starting or stopping on ${config.data_dir}; try again shortly.`);
    await sleep(LOOK_AGAIN_MS);
  }
}

/** A mistyped path must not become a new, empty platform. */
function requireData(config: Config): void {
  const advice = "set the correct one with --data, name a server with --server, or start one with vodbox serve";
  if (!existsSync(config.data_dir))
    throw new UserError(`The data directory ${config.data_dir} does not exist; ${advice}.`);
  const file = databaseFileOf(config);
  if (file === null || existsSync(file) || isLocked(config.data_dir)) return;
  // These are reported when the data is opened.
  if (!isRestoreUnfinished(config.data_dir) && lostDatabase(config) === null)
    throw new UserError(`The directory ${config.data_dir} contains no vodbox data; ${advice}.`);
}

/** Shells express "not set" as an empty variable. */
export const serverOfEnvironment = (): string | undefined => process.env.VODBOX_SERVER || undefined;

/** A server's URL without its last slash. Throws a UserError for anything else. */
export function serverUrl(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new UserError(`--server ${text} is not a URL; use http://127.0.0.1:8080, for example.`, 2);
  return withoutTrailing(text, "/");
}

/** A local data directory is ignored: its token belongs to another server. */
function remoteAdmin(config: Config, address: string): Admin {
  if (config.admin_token === undefined)
    throw new UserError(`Set VODBOX_ADMIN_TOKEN to the admin token of ${address}.`, 2);
  return adminOf(config, address);
}

/** Null when another command was faster after the check. */
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
      `There is no admin token in ${config.data_dir}; set VODBOX_ADMIN_TOKEN to the token of ${address}, or set its data directory with --data.`,
    );
  const headers = headersOf(token);
  return { address, headers, call: caller((request) => fetch(request), address, headers), close: async () => {} };
}

/** The user name on this machine, for the audit log. */
function whoami(): string {
  try {
    return `cli:${encodeURI(userInfo().username)}`;
  } catch {
    // A process in a container may have a user id without a name.
    return `cli:${process.getuid?.() ?? "unknown"}`;
  }
}

const headersOf = (token: string) => ({ "x-svc-admin-token": token, "x-svc-operator": whoami() });

function caller(
  send: (request: Request) => Promise<Response>,
  base: string,
  credential: Record<string, string>,
): Admin["call"] {
  return async <T>(method: string, path: string, body?: unknown) => {
    const isFile = body instanceof Uint8Array;
    const request = new Request(`${base}${path}`, {
      method,
      headers: { ...credential, "content-type": isFile ? "application/octet-stream" : "application/json" },
      ...(body !== undefined && { body: isFile ? new Uint8Array(body) : JSON.stringify(body) }),
    });
    const response = await send(request).catch((error: Error) => {
      throw new UserError(describeConnectionError(base, error));
    });
    const answer = jsonOf(base, await response.text());
    if (response.ok) return answer as T;
    const { error = response.statusText, code } = (answer ?? {}) as { error?: string; code?: string };
    throw new UserError(error, 1, code);
  };
}

function jsonOf(base: string, text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    throw new UserError(`${base} does not respond like a vodbox server; check the URL.`);
  }
}
