import { useEffect, useState } from "preact/hooks";
import { blobSource } from "#clients/typescript/upload/source.ts";
import { uploadSource } from "#clients/typescript/upload/upload.ts";
import { vodbox } from "#web/console/api.ts";
import { type LiveEvent, useLive } from "#web/console/hooks/live.ts";
import type { FoundFile } from "./dropped-files.ts";
import { isSameFile, storageFor } from "./unfinished.ts";

export type Transfer = FoundFile & {
  readonly id: number;
  readonly target: Target;
  state: "waiting" | "sending" | "encoding" | "ready" | "failed";
  assetId: number | null;
  sent: number;
  /** Bytes per second. */
  speed: number;
  /** Seconds; null until it is known. */
  remaining: number | null;
  /** 0 to 1. */
  encoded: number;
  stage: string | null;
  error: unknown;
};

/** Where uploads go. `owner` identifies who may resume them; `tenantId`: the operator's choice, else null. */
export type Target = { owner: string; tenantId: number | null; collectionId: number | null };

/** Characters of `relative_path`. */
const MAX_PATH = 1000;
/** Files that are sent at the same time; the others wait. */
const CONCURRENT = 3;

let all: Transfer[] = [];
const watchers = new Set<() => void>();
const aborts = new Map<number, AbortController>();
const waiting: number[] = [];
let lastId = 0;
let sending = 0;

const client = { ...vodbox.options, maxRetries: 8 };

function change(id: number, fields: Partial<Transfer>): void {
  all = all.map((one) => (one.id === id ? { ...one, ...fields } : one));
  for (const watch of watchers) watch();
}

const isUnsent = ({ state }: Transfer) => state === "sending" || state === "waiting";

// Leaving the page ends them, whichever page of the console is shown.
addEventListener("beforeunload", (event) => {
  if (all.some(isUnsent)) event.preventDefault();
});

function startNext(): void {
  if (sending >= CONCURRENT) return;
  const id = waiting.shift();
  if (id === undefined) return;
  sending++;
  void send(id).finally(() => {
    sending--;
    startNext();
  });
  startNext();
}

async function send(id: number): Promise<void> {
  const transfer = all.find((one) => one.id === id);
  if (!transfer) return;
  const abort = new AbortController();
  aborts.set(id, abort);
  const { file, path, target } = transfer;
  change(id, { state: "sending" });
  try {
    const { asset_id } = await uploadSource(client, blobSource(file), {
      ...(target.tenantId !== null && { tenant_id: target.tenantId }),
      ...(target.collectionId !== null && { collection_id: target.collectionId }),
      ...(path !== null && path.length <= MAX_PATH && { relative_path: path }),
      storage: storageFor(target.owner, file),
      early_playback: true,
      title: file.name.replace(/\.[^.]+$/, ""),
      signal: abort.signal,
      onProgress: ({ bytesSent, bytesPerSecond, secondsRemaining }) =>
        change(id, { sent: bytesSent, speed: bytesPerSecond, remaining: secondsRemaining }),
    });
    change(id, { state: "encoding", assetId: asset_id });
    void refresh(id, asset_id).catch(() => {});
  } catch (error) {
    if (!abort.signal.aborted) change(id, { state: "failed", error });
  } finally {
    aborts.delete(id);
  }
}

/** The state of a sent file's asset, for what happened before its events were received. */
async function refresh(id: number, assetId: number): Promise<void> {
  const asset = await vodbox.getAsset({ id: assetId });
  const { playback_status, progress, stage, error } = asset;
  const state = playback_status === "ready" ? "ready" : playback_status === "errored" ? "failed" : "encoding";
  change(id, { state, encoded: progress / 100, stage, error: error && new Error(error.message) });
}

function onEvent({ type, data }: LiveEvent): void {
  const transfer = all.find(({ assetId }) => assetId !== null && String(assetId) === data.asset_id);
  if (!transfer || transfer.assetId === null) return;
  if (type === "job.progress")
    change(transfer.id, { encoded: (data.progress as number) / 100, stage: data.stage as string | null });
  else if (type.startsWith("video.asset.")) void refresh(transfer.id, transfer.assetId).catch(() => {});
}

/** One after the other: a folder may have thousands of files. */
async function refreshAll(): Promise<void> {
  for (const { id, assetId, state } of all)
    if (assetId !== null && state === "encoding") await refresh(id, assetId).catch(() => {});
}

/** Uploads of this page. They continue while other pages of the console are shown. */
export const transfers = {
  /** A file that is being sent already is not sent twice. */
  add(files: FoundFile[], target: Target): void {
    const start = { state: "waiting", assetId: null, sent: 0, speed: 0, remaining: null, encoded: 0 } as const;
    const running = new Set(all.filter(isUnsent).map((one) => storageKey(one)));
    for (const { file, path } of files) {
      const transfer: Transfer = { id: ++lastId, file, path, target, ...start, stage: null, error: null };
      if (running.has(storageKey(transfer))) continue;
      all = [...all, transfer];
      waiting.push(transfer.id);
    }
    change(0, {});
    startNext();
  },
  /** Sends what is missing. */
  retry(id: number): void {
    change(id, { state: "waiting", error: null });
    waiting.push(id);
    startNext();
  },
  cancel(id: number): void {
    aborts.get(id)?.abort();
    all = all.filter((one) => one.id !== id);
    const index = waiting.indexOf(id);
    if (index !== -1) waiting.splice(index, 1);
    change(id, {});
  },
  /** Whether the remembered upload with this key is being sent by this page. */
  isRunning: (key: string) => all.some((one) => isUnsent(one) && isSameFile(one.target.owner, key, one.file)),
};

const storageKey = ({ file, path, target }: Transfer) =>
  JSON.stringify([target.owner, path, file.name, file.size, file.lastModified]);

export function useTransfers(): Transfer[] {
  const [list, setList] = useState(all);
  useEffect(() => {
    const watch = () => setList(all);
    watchers.add(watch);
    watch();
    // Events were not received while another page was shown.
    refreshAll();
    return () => {
      watchers.delete(watch);
    };
  }, []);
  useLive(onEvent, refreshAll);
  return list;
}
