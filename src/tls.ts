import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Logger } from "pino";
import { setInterval, UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";

const LOOK_EVERY_MS = 2000;

type Pair = { cert: Buffer; key: Buffer };
type Files = { certFile: string; keyFile: string };

/** Null without TLS. Throws UserError when only one of the two is set. */
export function tlsFiles({ tls_cert, tls_key }: Pick<Config, "tls_cert" | "tls_key">): Files | null {
  if (tls_cert === undefined && tls_key === undefined) return null;
  if (tls_cert === undefined || tls_key === undefined)
    throw new UserError("TLS needs both VODBOX_TLS_CERT and VODBOX_TLS_KEY.", 2);
  return { certFile: tls_cert, keyFile: tls_key };
}

/** Throws UserError when TLS is configured and cannot be used. */
export function usableTls(config: Pick<Config, "tls_cert" | "tls_key">): void {
  const files = tlsFiles(config);
  if (files) readPair(files);
}

/** Throws UserError for files that cannot be read or do not match. */
export function readPair({ certFile, keyFile }: Files): Pair {
  try {
    const pair = { cert: readPem(certFile, "VODBOX_TLS_CERT"), key: readPem(keyFile, "VODBOX_TLS_KEY") };
    createSecureContext(pair);
    return pair;
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(
      `The certificate ${certFile} and the key ${keyFile} cannot be used together: ${(error as Error).message}.`,
    );
  }
}

function readPem(path: string, setting: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === "ENOENT";
    throw new UserError(
      isAbsent
        ? `The file ${path} does not exist; set ${setting} to a PEM file.`
        : `${path} of ${setting} cannot be read (${(error as NodeJS.ErrnoException).code}); check its owner and mode.`,
    );
  }
}

/**
 * Calls `use` with a new pair once both files match; open connections keep theirs. An invalid or incomplete replacement
 * is logged once, and the current pair stays in use. Returns a function that stops watching.
 */
export function watchPair(files: Files, log: Logger, use: (pair: Pair) => void): () => void {
  const stampOf = () =>
    [files.certFile, files.keyFile]
      .map((path) => {
        const info = statSync(path, { throwIfNoEntry: false });
        return info && `${info.ino} ${info.mtimeMs} ${info.size}`;
      })
      .join();
  let seen = stampOf();
  const timer = setInterval(() => {
    const now = stampOf();
    if (now === seen) return;
    seen = now;
    try {
      use(readPair(files));
      log.info({ cert: files.certFile }, "the new TLS certificate is in use");
    } catch (error) {
      log.error({ err: error }, "the new TLS certificate cannot be used; the old one remains in use");
    }
  }, LOOK_EVERY_MS).unref();
  return () => clearInterval(timer);
}
