import { MediaError } from "../error.ts";

/** The media are not of a form of which an exact clip can be made; no other attempt can. `reason` is a clause. */
export class ClipImpossible extends MediaError {
  constructor(reason: string) {
    super("clip_not_possible", `No exact clip of this asset is possible: ${reason}.`, false);
  }
}
