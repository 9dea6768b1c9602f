import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import type { SpeechModels } from "#platform/outbound/transcribe/transcriber.ts";
import { TranscriptionFailed } from "#platform/outbound/transcribe/transcriber.ts";
import { downloadModel, ModelUnavailable } from "#platform/outbound/transcribe/whisper/download.ts";
import { SpeechModel } from "#protocol/speech-model.ts";
import { check, request, retrying, ServerRefused, ServerUnreachable, withTimeout } from "./lease-client.ts";

export type ModelServer = { server: string; token: () => string; scratchDir: string; minFreeBytes: number };

const TIMEOUT_MS = 30_000;
const ATTEMPTS = 5;

/**
 * The model of a server on another machine, downloaded once by its checksum and shared by the workers of this machine. The
 * server is asked with each job, so that another model is used from the next job on.
 */
export function serverModels({ server, token, scratchDir, minFreeBytes }: ModelServer): SpeechModels {
  const dir = join(scratchDir, "whisper");
  let loading: Promise<unknown> = Promise.resolve();
  return {
    async whisper(signal) {
      const model = await selected(signal);
      if (model === null) return null;
      const path = join(dir, `${model.sha256}.bin`);
      // Concurrent jobs of this process share a download; those of another process write to a file of their own.
      const before = loading.catch(() => {});
      const own = before.then(() => load(model, path, signal));
      loading = own;
      await own;
      return path;
    },
  };

  async function selected(signal: AbortSignal): Promise<SpeechModel | null> {
    try {
      return await retrying({ attempts: ATTEMPTS, signal }, async () => {
        const response = await request(`${server}/api/v1/worker/speech_models/selected`, {
          headers: { "x-svc-worker-token": token() },
          redirect: "error",
          signal: withTimeout(TIMEOUT_MS, signal),
        });
        const text = await response.text();
        if (response.status === 503 && text.includes("transcription_not_configured")) return null;
        check(response, text);
        return v.parse(SpeechModel, JSON.parse(text));
      });
    } catch (error) {
      signal.throwIfAborted();
      // A server of an earlier version has no models.
      if (error instanceof ServerRefused && error.status === 404) return null;
      if (error instanceof ServerUnreachable)
        throw new TranscriptionFailed("The server did not say which speech model to use.", error.message);
      throw error;
    }
  }

  async function load({ bytes, sha256, url }: SpeechModel, path: string, signal: AbortSignal): Promise<void> {
    if ((await sizeOf(path)) === bytes) return;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    // One of the downloads of several processes remains.
    const own = join(dir, `${sha256}.${process.pid}.bin`);
    try {
      await downloadModel({
        url: new URL(url, `${server}/`).href,
        headers: { "x-svc-worker-token": token() },
        redirect: "error",
        path: own,
        bytes,
        sha256,
        minFreeBytes,
        signal,
      });
      await rename(own, path);
    } catch (error) {
      if (error instanceof ModelUnavailable)
        throw new TranscriptionFailed("The speech model could not be downloaded from the server.", error.message);
      throw error;
    }
    await removeOthers(path);
  }

  async function removeOthers(path: string): Promise<void> {
    for (const name of await readdir(dir)) {
      const match = /^[0-9a-f]{64}(?:\.(\d{1,10}))?\.bin(?:\.part)?$/.exec(name);
      // Files with the number of a process are its downloads.
      if (!match || join(dir, name) === path || (match[1] && isAlive(Number(match[1])))) continue;
      await rm(join(dir, name), { force: true });
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => -1,
  );
