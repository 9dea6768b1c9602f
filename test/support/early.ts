import { writeSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import type { TestApp } from "./app.ts";
import { callback, putArtifacts, type UploadFields, uploaded } from "./flow.ts";
import { finish, nextTask, written } from "./tasks.ts";

const LADDER = [
  { name: "720p", width: 1280, height: 720 },
  { name: "480p", width: 854, height: 480 },
  { name: "360p", width: 640, height: 360 },
];
export const RENDITIONS = LADDER.map(({ name }) => name);
/** The plan of 100 seconds that play before they are encoded. */
export const EARLY_PLAN = {
  plan: { renditions: RENDITIONS },
  early: { segments: 25, renditions: LADDER },
};

/** What its worker reports. */
export const EARLY_MEDIA = {
  duration_seconds: 100,
  width: 1280,
  height: 720,
  renditions: [],
  audio_renditions: [
    { name: "audio", bandwidth: 128_000, codecs: "mp4a.40.2", playlist_path: "audio/playlist.m3u8" },
    { name: "audio-2", bandwidth: 128_000, codecs: "mp4a.40.2", playlist_path: "audio-2/playlist.m3u8" },
  ],
};

export type Early = { id: number; job: number; head: any; prefix: string; paths: Record<string, unknown> };

/** The result of a chunk, with its renditions only, or of the audio; of a video of so many segments. */
export function earlyResult(contract: any, segments = 25) {
  const names = contract.task.chunk?.renditions ?? RENDITIONS;
  const last = segments - (contract.task.chunk?.first_segment ?? 0);
  return { written: written({ task: { ...contract.task, plan: { renditions: names } } }, { last, all: segments }) };
}

/** Completes a chunk or the audio. */
export async function completeEarly(app: TestApp, contract: any, segments?: number): Promise<any> {
  const done = await callback(app, contract, "complete", earlyResult(contract, segments));
  if (done.status !== 200) throw new Error(done.text);
  return done.body;
}

/**
 * An asset whose first segment has been published by a worker without an encoder; the tasks that follow are queued. No
 * urgent task may be queued before. `priority`: above that of all queued jobs. With `isHeadLeft` the task that published is
 * still leased. `claim`: of the worker.
 */
export async function publishedEarly(
  app: TestApp,
  key: string,
  {
    priority,
    plan = EARLY_PLAN,
    isHeadLeft = false,
    thumbnail,
    claim = () => nextTask(app),
    ...fields
  }: UploadFields & {
    priority?: number;
    plan?: object;
    isHeadLeft?: boolean;
    thumbnail?: Uint8Array;
    claim?: () => ReturnType<typeof nextTask>;
  } = {},
): Promise<Early> {
  const made = await uploaded(app, key, { early_playback: true, playback_policy: "public", ...fields });
  if (priority !== undefined) await app.as({ admin: app.admin }).prioritizeJob(made.job.id, { priority });
  await finish(app, (await claim()).body, { ...plan });
  const head = (await claim()).body;
  const paths = await putArtifacts(app, head, thumbnail && { [head.outputs.thumbnail_path]: thumbnail });
  const shown = await callback(app, head, "publish", { ...paths, media: EARLY_MEDIA });
  if (shown.status !== 200) throw new Error(shown.text);
  if (!isHeadLeft) await completeEarly(app, head);
  return {
    id: made.asset.id as number,
    job: made.job.id as number,
    head,
    prefix: head.outputs.prefix as string,
    paths,
  };
}

/** Completes the other tasks of the only early asset that has some; the paths that the last one, `images`, published. */
export async function completeRest(app: TestApp, thumbnail?: Uint8Array): Promise<Record<string, unknown>> {
  for (;;) {
    const { body: contract } = await nextTask(app);
    if (contract.task.kind !== "images") {
      await completeEarly(app, contract);
      continue;
    }
    const paths = await putArtifacts(app, contract, thumbnail && { [contract.outputs.thumbnail_path]: thumbnail });
    const done = await callback(app, contract, "complete", { ...paths, media: EARLY_MEDIA });
    if (done.body.status !== "completed") throw new Error(done.text);
    return paths;
  }
}

/** One of its files, as a player requests it; `token` of signed playback. */
export const requestEarly = (
  app: TestApp,
  { id, prefix }: Pick<Early, "id" | "prefix">,
  path: string,
  { method = "GET", token, signal }: { method?: string; token?: string; signal?: AbortSignal } = {},
) =>
  app.call(method, `/media/${id}/${token === undefined ? "" : `~${token}/`}${prefix.split("/").at(-2)}/${path}`, {
    ...(signal && { signal }),
  });

/** A key of the media of an attempt in storage, with content. */
export const storeEarly = async (app: TestApp, prefix: string, path: string) =>
  writeSmallObject(app.opened.app.objects as ObjectStore, prefix + path, Buffer.from(path), {
    contentType: "video/mp4",
  });
