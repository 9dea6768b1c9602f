import { languageOf } from "#features/subtitles/content.ts";
import { subtitlesOf } from "#features/subtitles/queries.ts";
import { notFound } from "#lib/base";
import type { AssetRow } from "#storage/db/schema.ts";
import { type Endpoint, endpoint, type MuxCall } from "../endpoint.ts";
import { invalidParameter, notSupported } from "../errors.ts";
import { addAudio, addText, TRACK_NAMES } from "./add-track.ts";
import { AUDIO_TRACK, addedAudioOf, toAudioTrack, toTextTrack, VIDEO_TRACK } from "./record.ts";
import { SubtitlesGenerate, TrackCreate, TrackUpdate } from "./schema.ts";

const path = "/video/v1/assets/:id/tracks";
const WRITES = { scopes: ["assets:write"] } as const;

/** Throws 400 for a text, and 422 for audio that was added: the speech of the primary one is recognized. */
function refuseTrack({ isAudio }: { isAudio: boolean }): void {
  if (!isAudio) invalidParameter("track_id", "is a text track");
  notSupported("track_id of audio that was added");
}

/** Text tracks and added audio of an asset. Its video, and the audio of its source, are not changed. */
export const trackEndpoints = (requireAsset: (call: MuxCall) => Promise<AssetRow>): Endpoint[] => {
  /** The asset and the track of a path. Throws 404, and 400 for the video and its audio. */
  async function trackOf(call: MuxCall): Promise<{ asset: AssetRow; id: number; isAudio: boolean }> {
    const asset = await requireAsset(call);
    const name = call.params.track_id ?? "";
    if (name === VIDEO_TRACK || name === AUDIO_TRACK)
      invalidParameter("track_id", "is the video or its primary audio, which cannot be changed");
    const audio = (await addedAudioOf(call.app.db, asset.id)).find((row) => toAudioTrack(row).id === name);
    if (audio) return { asset, id: audio.id, isAudio: true };
    const row = (await subtitlesOf(call.app.db, asset.id)).find(({ id }) => String(id) === name);
    return { asset, id: (row ?? notFound("track")).id, isAudio: false };
  }
  const pathOf = ({ asset, id, isAudio }: { asset: AssetRow; id: number; isAudio: boolean }) =>
    `/api/v1/assets/${asset.id}/${isAudio ? "audio_tracks" : "subtitles"}/${id}`;
  const shown = async ({ app }: MuxCall, asset: AssetRow, id: number, isAudio: boolean) => {
    if (isAudio) {
      const audio = (await addedAudioOf(app.db, asset.id)).find((one) => one.id === id);
      return toAudioTrack(audio ?? notFound("track"));
    }
    const row = (await subtitlesOf(app.db, asset.id)).find((one) => one.id === id);
    return toTextTrack(row ?? notFound("track"));
  };
  return [
    endpoint({
      ...WRITES,
      method: "POST",
      path,
      operation: "createTrack",
      status: 201,
      async handle(call) {
        const asset = await requireAsset(call);
        const body = await call.body(TrackCreate);
        const isAudio = body.type === "audio";
        if (isAudio && body.text_type !== undefined) invalidParameter("text_type", "is for text tracks");
        if (isAudio && body.closed_captions) invalidParameter("closed_captions", "is for text tracks");
        const id = isAudio ? await addAudio(call, asset, body) : await addText(call, asset.id, body);
        return shown(call, asset, id, isAudio);
      },
    }),
    endpoint({
      ...WRITES,
      method: "PATCH",
      path: `${path}/:track_id`,
      operation: "updateTrack",
      async handle(call) {
        const track = await trackOf(call);
        const { language_code: language, name, closed_captions } = await call.body(TrackUpdate);
        if (language !== undefined) languageOf(language, "language_code");
        if (track.isAudio && closed_captions) invalidParameter("closed_captions", "is for text tracks");
        const label = name !== undefined && (track.isAudio ? { name } : { label: name });
        const role = closed_captions !== undefined &&
          !track.isAudio && { role: closed_captions ? "caption" : "subtitle" };
        const change = { ...(language !== undefined && { language }), ...label, ...role };
        await call.native("PATCH", pathOf(track), change, TRACK_NAMES);
        return shown(call, track.asset, track.id, track.isAudio);
      },
    }),
    endpoint({
      ...WRITES,
      method: "POST",
      path: `${path}/:track_id/generate-subtitles`,
      operation: "generateSubtitle",
      status: 201,
      async handle(call) {
        const asset = await requireAsset(call);
        const body = await call.body(SubtitlesGenerate);
        if (call.params.track_id !== AUDIO_TRACK) refuseTrack(await trackOf(call));
        const made = [];
        for (const { language_code: language, name } of body.generated_subtitles) {
          const { subtitle } = await call.native<{ subtitle: { id: number } }>(
            "POST",
            `/api/v1/assets/${asset.id}/subtitles/generate`,
            { language },
          );
          const track = { asset, id: subtitle.id, isAudio: false };
          if (name !== undefined) await call.native("PATCH", pathOf(track), { label: name });
          made.push(await shown(call, asset, subtitle.id, false));
        }
        return made;
      },
    }),
    endpoint({
      ...WRITES,
      method: "DELETE",
      path: `${path}/:track_id`,
      operation: "deleteTrack",
      status: 204,
      async handle(call) {
        return call.native("DELETE", pathOf(await trackOf(call)));
      },
    }),
  ];
};
