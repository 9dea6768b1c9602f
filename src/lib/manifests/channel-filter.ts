import { type MasterEdit, withoutLines } from "./master-edits.ts";
import type { MpdEdit } from "./mpd-edits.ts";

/*
 * Manifests without audio of more than two channels, where there is other audio. hls.js takes variants that differ only in
 * their channels for different qualities.
 */

const STEREO = 2;

/** Leaves out the groups of audio that have more channels, and their variants. */
export const inStereo: MasterEdit = (lines) => {
  const hasMore = new Map<string, boolean>();
  for (const line of lines) {
    if (line.kind !== "rendition" || line.attribute("TYPE") !== "AUDIO") continue;
    const group = line.attribute("GROUP-ID") ?? "";
    const channels = Number.parseInt(line.attribute("CHANNELS") ?? "", 10);
    hasMore.set(group, (hasMore.get(group) ?? false) || channels > STEREO);
  }
  if ([...hasMore.values()].every(Boolean)) return lines;
  const isHidden = (group: string | undefined) => group !== undefined && hasMore.get(group) === true;
  return withoutLines(lines, (line) => {
    if (line.kind !== "rendition") return isHidden(line.attribute("AUDIO"));
    // Groups of other types may have the same name.
    return line.attribute("TYPE") === "AUDIO" && isHidden(line.attribute("GROUP-ID"));
  });
};

/** Leaves out the sets of audio that have more channels. */
export const mpdInStereo: MpdEdit = (draft) => {
  // A manifest may have been stored before manifests were checked. It keeps all of its sets.
  if (!draft.isWellFormed()) return;
  const audio = draft.sets().filter(({ isAudio }) => isAudio);
  const more = audio.filter(({ channels, representations }) =>
    [{ channels }, ...representations].some((one) => one.channels.some((count) => count > STEREO)),
  );
  if (more.length < audio.length) for (const set of more) draft.remove(set);
};
