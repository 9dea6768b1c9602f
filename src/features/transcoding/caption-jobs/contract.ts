import type * as v from "valibot";
import type { App } from "#app.ts";
import { newDeliveredPrefix } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { WorkerContract } from "#protocol/contract.ts";
import { PARTS_FROM_MS, type SpeechWork, wordsPathOf } from "#protocol/speech.ts";
import type { AssetRow, CaptionJobRow } from "#storage/db/schema.ts";
import type { LeasedPart } from "../caption-parts/queue.ts";
import { joinContract } from "../join-contract.ts";
import { joinedPart } from "../joined-part.ts";
import { sideContract } from "../side-contract.ts";
import type { SideLease } from "../side-lease.ts";
import type { LeasedCaptions } from "./queue.ts";

export const CAPTION_JOBS = "/api/v1/caption_jobs";
export const CAPTION_PARTS = "/api/v1/caption_job_parts";
/** Ids of the contracts of captions and parts: apart from those of jobs, by which workers name directories. */
const FIRST_ID = { captions: 2_000_000_000_000, part: 3_000_000_000_000 };
const FILE = "captions.vtt";

/** Where the worker of an attempt writes the captions. */
export const captionsPath = (prefix: string) => `${prefix}${FILE}`;

type Contract = v.InferInput<typeof WorkerContract>;
type ContractOptions = { sharesDisk: boolean; lane: string; takesParts: boolean };

/** A job of captions as a worker receives it. */
export function captionContract(
  app: App,
  { row: job, asset, token }: LeasedCaptions,
  { takesParts, ...options }: ContractOptions,
): Contract {
  const prefix = job.prefix as string;
  const path = captionsPath(prefix);
  const step = stepOf(app, job, asset, takesParts);
  const speech = {
    language: job.language,
    path,
    words_path: wordsPathOf(path),
    ...(step && { step }),
    ...(step === "join" && { parts_url: partsUrl(app, job, 0) }),
  };
  return speechContract(app, { asset, row: job, token, prefix, speech, kind: "captions", ...options });
}

/** A part of long audio as a worker receives it. It writes nothing to storage. */
export function partContract(
  app: App,
  { row: part, asset, token }: LeasedPart,
  job: CaptionJobRow,
  { sharesDisk, lane }: Omit<ContractOptions, "takesParts">,
): Contract {
  const prefix = newDeliveredPrefix(part.tenantId);
  const times = { start_ms: part.startMs, end_ms: part.endMs };
  const speech = {
    language: part.language,
    requested_language: job.language,
    path: captionsPath(prefix),
    step: "part" as const,
    part: times,
  };
  return speechContract(app, { asset, row: part, token, prefix, speech, kind: "part", sharesDisk, lane });
}

/** The URL of a page of what was recognized in the parts of a job, from the part with a number on. */
export const partsUrl = (app: App, { id }: CaptionJobRow, from: number): string =>
  `${app.baseUrl()}${CAPTION_JOBS}/${id}/parts?from=${from}`;

/** What a worker does of a job; null: all of it. */
function stepOf(
  { config }: App,
  { parts }: CaptionJobRow,
  asset: AssetRow,
  takesParts: boolean,
): "join" | "plan" | null {
  if (parts !== null) return "join";
  const isLong = asset.durationSeconds * 1000 > PARTS_FROM_MS;
  return takesParts && isLong && config.parallel === "auto" ? "plan" : null;
}

type Leased = {
  asset: AssetRow;
  row: SideLease;
  token: string;
  prefix: string;
  speech: SpeechWork;
  kind: keyof typeof FIRST_ID;
  sharesDisk: boolean;
  lane: string;
};

function speechContract(app: App, { asset, row, token, prefix, speech, kind, sharesDisk, lane }: Leased): Contract {
  const objects = storageOf(app);
  const local = (key: string) => (sharesDisk ? objects.localPath(key) : null);
  const path = kind === "part" ? CAPTION_PARTS : CAPTION_JOBS;
  // What a part writes is on the worker only.
  const written = kind === "part" ? () => null : local;
  return {
    ...sideContract(app, { path, row, token, prefix, local: written }),
    job: { id: FIRST_ID[kind] + row.id, asset_id: asset.id, attempt: row.attempts, profile: "captions" },
    // The job has no source.
    source: { url: "", method: "GET", headers: {}, bytes: 0, content_type: "", local_path: null, sha256: null },
    outputs: {
      prefix,
      manifest_path: `${prefix}master.m3u8`,
      dash_manifest_path: null,
      thumbnail_path: null,
      storyboard_path: null,
      mp4_path: null,
      subtitle_paths: {},
      words_paths: {},
      captions_required: false,
    },
    encoding_spec: {},
    ...(lane === "captions" && { lane }),
    speech,
    join: joinContract([joinedPart(asset)], local),
  };
}
