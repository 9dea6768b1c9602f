import { MediaError } from "../error.ts";

/** The media are not of a form that can be joined; no other attempt can. `reason` is a clause. */
export class JoinImpossible extends MediaError {
  constructor(reason: string) {
    super("join_not_possible", `The assets cannot be joined: ${reason}.`, false);
  }
}
