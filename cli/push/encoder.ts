import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { cacheDir } from "../../src/lib/cache-dir.ts";
import { resolveBinaries } from "../../src/media/binaries.ts";
import { openScratch } from "../../src/worker/scratch.ts";
import { settingsOf } from "../settings.ts";
import type { Encoder } from "./encode-file.ts";
import type { Sender } from "./send.ts";
import { servedSpec } from "./served-spec.ts";

/**
 * What encoding takes, looked at before the first file is: an hour of it is not begun for a server that will refuse what
 * comes of it. `stop` ends what is being encoded, and resolves once it has.
 */
export async function openEncoder(
  command: Command,
  { call, patience, meter }: Sender,
  { slot, scratch }: { slot: Encoder["slot"]; scratch: string | undefined },
): Promise<{ encoder: Encoder; stop(): Promise<void> }> {
  const config = settingsOf(command);
  const cache = cacheDir();
  const binaries = await resolveBinaries({ ffmpeg: config.ffmpeg, ffprobe: config.ffprobe, cacheDir: cache });
  const { spec, name } = await patience.until(() => servedSpec(call));
  // Whether the key may, and the server has a storage.
  await patience.until(() => call("GET", "/ingest_batches/desktop_storage"));
  const dir = scratch === undefined ? join(cache, "encode") : resolve(scratch);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await forgetOld(dir);
  const own = await openScratch(dir);
  const stopping = new AbortController();
  let busy: Promise<unknown> = Promise.resolve();
  // Its process is about to end, and has said so.
  const never = () => new Promise<never>(() => {});
  const encoder: Encoder = {
    ...{ spec, specName: name, binaries, memoryBytes: config.ffmpeg_memory_bytes, dir, scratch: own, meter },
    signal: stopping.signal,
    slot: (work) =>
      slot(async () => {
        const encoding = stopping.signal.aborted ? never() : work();
        busy = encoding.catch(() => {});
        return encoding.catch((error) => (stopping.signal.aborted ? never() : Promise.reject(error)));
      }),
  };
  return {
    encoder,
    async stop() {
      stopping.abort();
      await busy;
      await own.remove();
    },
  };
}

/** Longer than any batch lives that is not touched. */
const KEPT_MS = 14 * 86_400_000;

/** What nobody came back for. */
async function forgetOld(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    const folder = join(dir, name);
    const found = /^[0-9a-f]{32}$/.test(name) ? await stat(folder).catch(() => null) : null;
    if (found && Date.now() - found.mtimeMs > KEPT_MS) await rm(folder, { recursive: true, force: true });
  }
}
