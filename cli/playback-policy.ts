import { alternatives, UserError } from "#lib/base";
import { PLAYBACK_POLICIES } from "#model/enums.ts";

/** Checks the option `--playback-policy` before anything is sent. Throws a UserError. */
export function requirePlaybackPolicy(policy: string | undefined): void {
  if (policy !== undefined && !(PLAYBACK_POLICIES as readonly string[]).includes(policy))
    throw new UserError(`--playback-policy must be ${alternatives(PLAYBACK_POLICIES)}.`, 2);
}
