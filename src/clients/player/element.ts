import type { PlayerError } from "./events.ts";

/** `<svc-player>`: it behaves like a media element. */
export type SvcPlayerElement = Omit<HTMLVideoElement, "error"> & {
  readonly error: PlayerError | null;
  token: string | null;
};
