import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { sha256, UserError } from "#lib/base";
import { cacheDir, resolveBinaries } from "#lib/executable";
import type { EncodingSpec } from "#protocol/encoding-spec.ts";
import { openScratch, type Scratch } from "#worker/scratch.ts";
import { settingsOf } from "../settings.ts";
import type { Encoder } from "./encode-file.ts";
import type { Sender } from "./send.ts";
import { servedSpec } from "./served-spec.ts";

/**
 * Encodes files for a server, after checking that everything needed is available: no hour of encoding is started for a
 * server that will refuse the result. `stop` aborts the encodes, and resolves when they have ended.
 */
export async function openEncoder(
  command: Command,
  { call, patience, meter, tenantId }: Sender,
  { slot, scratch, profile }: { slot: Encoder["slot"]; scratch: string | undefined; profile: string | undefined },
): Promise<{ encoder: Encoder; stop(): Promise<void> }> {
  const config = settingsOf(command);
  const cache = cacheDir();
  const binaries = await resolveBinaries({ ffmpeg: config.ffmpeg, ffprobe: config.ffprobe, cacheDir: cache });
  const { spec, name } = await patience.until(() => servedSpec(call, { profile, tenantId }));
  // Checks the key's scopes and the server's storage.
  await patience.until(() =>
    call("GET", `/ingest_batches/desktop_storage${tenantId === undefined ? "" : `?tenant_id=${tenantId}`}`),
  );
  const dir = scratch === undefined ? join(cache, "encode") : resolve(scratch);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await forgetOld(dir);
  const own = await openScratch(dir);
  const watermark = await watermarkOf(spec, { call, patience }, own);
  const stopping = new AbortController();
  let busy: Promise<unknown> = Promise.resolve();
  // The process is about to exit, and has reported why.
  const never = () => new Promise<never>(() => {});
  const encoder: Encoder = {
    spec,
    specName: name,
    binaries,
    memoryBytes: config.ffmpeg_memory_bytes,
    dir,
    scratch: own,
    meter,
    watermark,
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

/** Downloads the image of the specification's watermark, and returns its path; undefined when there is none. */
async function watermarkOf(
  { video: { enabled, watermark } }: EncodingSpec,
  { call, patience }: Pick<Sender, "call" | "patience">,
  scratch: Scratch,
): Promise<string | undefined> {
  if (!enabled || !watermark) return undefined;
  const { url, sha256: expected } = watermark.image;
  // The server may have another base URL than the one used here.
  const { pathname, search } = new URL(url);
  const image = await patience.until(() => call.bytes(pathname.slice(pathname.indexOf("/api/v1") + 7) + search));
  if (sha256(image) !== expected) throw new UserError("The watermark has changed meanwhile; try again.");
  const path = join(await scratch.jobFolder("watermark"), "watermark.png");
  await writeFile(path, image);
  return path;
}

/** Longer than an inactive batch can live. */
const KEPT_MS = 14 * 86_400_000;

/** Directories of abandoned runs. */
async function forgetOld(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    const folder = join(dir, name);
    const info = /^[0-9a-f]{32}$/.test(name) ? await stat(folder).catch(() => null) : null;
    if (info && Date.now() - info.mtimeMs > KEPT_MS) await rm(folder, { recursive: true, force: true });
  }
}
