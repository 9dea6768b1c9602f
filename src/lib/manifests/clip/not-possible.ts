import { HttpError } from "#lib/base";

/** Throws 422: the media of the asset are not of a form that can be clipped. `reason` is a clause. */
export const impossible = (reason: string): never => {
  throw new HttpError(422, "clip_not_possible", `No clip of this asset is possible: ${reason}.`);
};
