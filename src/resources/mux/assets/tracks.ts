import type { AssetRow } from "../../../../storage/db/schema.ts";
import { notFound } from "../../../lib/errors.ts";
import { subtitlesOf } from "../../subtitles/queries.ts";
import { type Endpoint, endpoint, type MuxCall } from "../endpoint.ts";
import { invalidParameter } from "../errors.ts";
import { addText } from "./create.ts";
import { AUDIO_TRACK, toTextTrack, VIDEO_TRACK } from "./record.ts";
import { TrackCreate, TrackUpdate } from "./schema.ts";

const path = "/video/v1/assets/:id/tracks";
const WRITES = { scopes: ["assets:write"] } as const;

/** Text tracks of an asset. Its video and audio are not changed. */
export const trackEndpoints = (requireAsset: (call: MuxCall) => Promise<AssetRow>): Endpoint[] => {
  /** The asset and the text track of a path. Throws 404, and 400 for the video and its audio. */
  async function textOf(call: MuxCall): Promise<{ asset: AssetRow; id: number }> {
    const asset = await requireAsset(call);
    const name = call.params.track_id ?? "";
    if (name === VIDEO_TRACK || name === AUDIO_TRACK)
      invalidParameter("track_id", "is the video or its primary audio, which cannot be changed");
    const row = (await subtitlesOf(call.app.db, asset.id)).find(({ id }) => String(id) === name);
    return { asset, id: (row ?? notFound("track")).id };
  }
  const shown = async ({ app }: MuxCall, asset: AssetRow, id: number) => {
    const row = (await subtitlesOf(app.db, asset.id)).find((one) => one.id === id);
    return toTextTrack(row ?? notFound("track"));
  };
  return [
    endpoint({
      ...WRITES,
      method: "POST",
      path,
      status: 201,
      async handle(call) {
        const asset = await requireAsset(call);
        return shown(call, asset, await addText(call, asset.id, await call.body(TrackCreate)));
      },
    }),
    endpoint({
      ...WRITES,
      method: "PATCH",
      path: `${path}/:track_id`,
      async handle(call) {
        const { asset, id } = await textOf(call);
        const { language_code: language, name: label } = await call.body(TrackUpdate);
        const change = { ...(language !== undefined && { language }), ...(label !== undefined && { label }) };
        await call.native("PATCH", `/api/v1/assets/${asset.id}/subtitles/${id}`, change);
        return shown(call, asset, id);
      },
    }),
    endpoint({
      ...WRITES,
      method: "DELETE",
      path: `${path}/:track_id`,
      status: 204,
      async handle(call) {
        const { asset, id } = await textOf(call);
        return call.native("DELETE", `/api/v1/assets/${asset.id}/subtitles/${id}`);
      },
    }),
  ];
};
