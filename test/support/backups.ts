import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { restoreBackup } from "#features/operations/backup/restore.ts";
import { type ConfigSources, loadConfig } from "#platform/config/load.ts";
import { UserError } from "#src/lib/base/errors.ts";
import { embedded, embeddedNames } from "#src/lib/executable/embedded.ts";
import { readyAsset } from "./flow.ts";
import { emptyFolder } from "./folder.ts";
import { run, startServer, tenantKey } from "./process.ts";
import { subtitled } from "./subtitles.ts";

// Stored in the data directory, as operators have them, so that they can be restored.
const env = { VODBOX_ADMIN_TOKEN: "", VODBOX_WORKER_TOKEN: "", VODBOX_LOG_LEVEL: "error" };
type Env = Record<string, string>;

/** A server with its own tokens. */
export async function ownServer(dataDir: string, more: Env = {}) {
  const started = await startServer(dataDir, { env: { ...env, ...more } });
  const token = (name: string) => readFileSync(join(dataDir, "secrets", `${name}_token`), "utf8").trim();
  return { ...started, admin: token("admin"), worker: token("worker") };
}

/** One with a tenant, a key, and an asset that is ready and has a subtitle. */
export async function filledServer(dataDir = emptyFolder(), more: Env = {}) {
  const server = await ownServer(dataDir, more);
  const key = await tenantKey(server);
  const ready = await readyAsset(server, key, { bytes: "source of the first" });
  await subtitled(server, key, ready.asset.id);
  return { server, key, ready, dataDir };
}

/** `vodbox admin …` with additional settings `more`; progress on stderr is not an error. */
export const operator = (more: Env = {}) => {
  const cli = async (...args: string[]) => {
    const ended = await run(["admin", ...args], { env: { ...env, ...more } });
    return { ...ended, stderr: ended.stderr.replaceAll(/^(backup|check|restore): .*\n/gm, "") };
  };
  return {
    cli,
    done: async (...args: string[]) => {
      const ended = await cli(...args);
      expect(ended, `admin ${args.join(" ")}`).toMatchObject({ code: 0, stderr: "" });
      return ended.stdout;
    },
    failed: async (...args: string[]) => {
      const ended = await cli(...args);
      expect(ended, `admin ${args.join(" ")}`).toMatchObject({ code: 1, stdout: "" });
      expect(ended.stderr).toMatch(/^vodbox: [^\n]*\.\n$/);
      return ended.stderr;
    },
  };
};

const migrations = () =>
  embeddedNames("migrations/").map((name) => ({
    name: name.slice("migrations/".length),
    sql: embedded(name).toString("utf8"),
  }));

/** Restores like the command, in this process because there are many; null, or the message of the refusal. */
export async function restoring(
  file: string,
  dataDir: string,
  flags: ConfigSources["flags"] = {},
): Promise<string | null> {
  const config = loadConfig({ flags: { data_dir: dataDir, ...flags }, env: {} });
  const options = { config, file, migrations: migrations(), openObjects: async () => null, progress: () => {} };
  const error = await restoreBackup(options).then(
    () => null,
    (thrown) => thrown,
  );
  if (error === null) return null;
  if (!(error instanceof UserError)) throw error;
  return error.message;
}
