import type * as v from "valibot";
import type { App } from "#app.ts";
import { storageOf } from "#platform/http/storage.ts";
import { wordsPathOf } from "#protocol/speech.ts";
import type { WorkerContract } from "#protocol/worker.ts";
import { joinContract } from "../join-contract.ts";
import { joinedPart } from "../joined-part.ts";
import { sideContract } from "../side-contract.ts";
import type { LeasedCaptions } from "./queue.ts";

export const CAPTION_JOBS = "/api/v1/caption_jobs";
/** Ids of the contracts of captions: apart from those of jobs, by which workers name directories. */
const FIRST_ID = 2_000_000_000_000;
const FILE = "captions.vtt";

/** Where the worker of an attempt writes the captions. */
export const captionsPath = (prefix: string) => `${prefix}${FILE}`;

/** A job of captions as a worker receives it. */
export function captionContract(
  app: App,
  { row: job, asset, token }: LeasedCaptions,
  { sharesDisk, lane }: { sharesDisk: boolean; lane: string },
): v.InferInput<typeof WorkerContract> {
  const objects = storageOf(app);
  const prefix = job.prefix as string;
  const local = (key: string) => (sharesDisk ? objects.localPath(key) : null);
  return {
    ...sideContract(app, { path: CAPTION_JOBS, row: job, token, prefix, local }),
    job: { id: FIRST_ID + job.id, asset_id: asset.id, attempt: job.attempts, profile: "captions" },
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
    speech: { language: job.language, path: captionsPath(prefix), words_path: wordsPathOf(captionsPath(prefix)) },
    join: joinContract([joinedPart(asset)], local),
  };
}
