import type { TestApp } from "./app.ts";
import type { Answer } from "./client.ts";
import { typedClient } from "./typed-client.ts";

export type UploadFields = Record<string, unknown> & { bytes?: string | Uint8Array };

/** Initiate, put, complete, like a simple client: it follows URLs and constructs none. */
export async function uploaded(
  app: Pick<TestApp, "call">,
  key: string,
  { bytes = "not really a video", ...fields }: UploadFields = {},
) {
  const size = typeof bytes === "string" ? Buffer.byteLength(bytes) : bytes.length;
  const initiated = await typedClient(app.call)(key).initiateUpload({
    filename: "clip.mp4",
    bytes_expected: size,
    ...fields,
  });
  if (initiated.status !== 201) throw new Error(initiated.text);
  const put = await app.call(initiated.body.upload_method, initiated.body.upload_url, {
    raw: bytes as string,
    headers: initiated.body.upload_headers,
  });
  if (put.status !== 200) throw new Error(put.text);
  const completed = await typedClient(app.call)(key).completeUpload(initiated.body.id, { bytes_received: size });
  if (completed.status !== 200) throw new Error(completed.text);
  return { upload: completed.body, asset: completed.body.asset, job: completed.body.transcoding_job };
}

let claims = 0;
/** One claim, by default with a new Idempotency-Key. */
export const next = (
  app: Pick<TestApp, "call" | "worker">,
  key = `claim-${++claims}`,
  body: unknown = { worker_id: "w1" },
): Promise<Answer> =>
  typedClient(app.call)({ worker: app.worker, headers: { "idempotency-key": key } }).unchecked.claimJob(body);

/** The contract of a job, in a queue whose other jobs no test claims: those before it are claimed too. */
export async function contractOf(app: TestApp, jobId: number) {
  for (;;) {
    const { body, status } = await next(app);
    if (status !== 200) throw new Error(`There is no job ${jobId}`);
    if (body.job.id === jobId) return body;
  }
}

/** A callback of the contract that a claim returned. */
export const callback = (
  app: Pick<TestApp, "call" | "worker">,
  contract: any,
  name: "heartbeat" | "complete" | "publish" | "fail" | "release",
  body: unknown = {},
) => app.call("POST", contract.callbacks[`${name}_url`], { worker: app.worker, lease: contract.lease.token, body });

/** Puts small placeholders at the outputs of a contract, through its own presigned URLs. */
export async function putArtifacts(
  app: Pick<TestApp, "call" | "worker">,
  contract: any,
  extra: Record<string, string | Uint8Array> = {},
) {
  const { manifest_path, dash_manifest_path, thumbnail_path, storyboard_path, mp4_path, prefix } = contract.outputs;
  const contents: Record<string, string | Uint8Array> = {
    [manifest_path]: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\nlow/playlist.m3u8\n",
    [dash_manifest_path]:
      '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S"><Period></Period></MPD>',
    [thumbnail_path]: "jpeg",
    [storyboard_path]: "WEBVTT\n\n00:00:00.000 --> 00:00:04.000\nstoryboard-1.jpg#xywh=0,0,160,90\n",
    [`${prefix}storyboard-1.jpg`]: "sheet",
    ...(mp4_path && { [mp4_path]: "whole file" }),
    [`${prefix}low/playlist.m3u8`]: "#EXTM3U\n#EXTINF:4,\n1.m4s\n#EXT-X-ENDLIST\n",
    [`${prefix}low/1.m4s`]: "segment",
    ...extra,
  };
  const signed = await app.call("POST", contract.artifacts.sign_url, {
    worker: app.worker,
    lease: contract.lease.token,
    ...(contract.attempt_id && { headers: { "x-svc-job-attempt-id": String(contract.attempt_id) } }),
    body: { paths: Object.keys(contents) },
  });
  if (signed.status !== 200) throw new Error(signed.text);
  for (const { path, url, method, headers } of signed.body) {
    const put = await app.call(method, url, { headers, raw: contents[path] as string });
    if (put.status !== 200) throw new Error(put.text);
  }
  return { manifest_path, dash_manifest_path, thumbnail_path, storyboard_path, mp4_path, subtitle_paths: {} };
}

/** An asset that is ready to play, from a worker without an encoder. */
export async function readyAsset(app: Pick<TestApp, "call" | "worker">, key: string, fields: UploadFields = {}) {
  const made = await uploaded(app, key, fields);
  return { ...made, contract: await encodedNext(app) };
}

/** Completes the next job as a worker without an encoder; returns its contract. */
export async function encodedNext(app: Pick<TestApp, "call" | "worker">) {
  const { body: contract } = await next(app);
  const paths = await putArtifacts(app, contract);
  const done = await callback(app, contract, "complete", {
    ...paths,
    media: { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] },
  });
  if (done.status !== 200) throw new Error(done.text);
  return contract;
}
