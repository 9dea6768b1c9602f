import type { PlayerData } from "./player-data.ts";

function addTrack(video: HTMLVideoElement, fields: Partial<HTMLTrackElement>): HTMLTrackElement {
  const track = Object.assign(document.createElement("track"), fields);
  video.append(track);
  return track;
}

/** media-chrome parses chapters as markup; a title is text. */
const asText = (title: string) => title.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** A track created by a script cannot be removed, so each element has one for all its videos. */
const chapterTracks = new WeakMap<HTMLVideoElement, TextTrack>();

/** Replaces subtitles, chapters and the thumbnails over the timeline. `shown`: labels of subtitles, instead of the default. */
export function replaceTracks(
  video: HTMLVideoElement,
  { subtitles, chapters, storyboard_url }: Pick<PlayerData, "subtitles" | "chapters" | "storyboard_url">,
  shown: readonly string[] | null = null,
): void {
  for (const track of video.querySelectorAll("track")) track.remove();
  for (const { language, label, url, is_default, role } of subtitles) {
    const isDefault = is_default && shown === null;
    const { track } = addTrack(video, {
      kind: role === "caption" ? "captions" : "subtitles",
      srclang: language,
      label,
      src: url,
      default: isDefault,
    });
    if (shown === null) continue;
    // Chromium chooses another track later, next to the one that is shown, among those whose mode has never changed.
    track.mode = "hidden";
    track.mode = shown.includes(label) ? "showing" : "disabled";
  }
  // media-chrome finds it by this label. Metadata tracks are fetched once they are not disabled.
  if (storyboard_url !== null)
    addTrack(video, { kind: "metadata", label: "thumbnails", src: storyboard_url, default: true });
  const known = chapterTracks.get(video);
  if (!known && chapters.length === 0) return;
  const track = known ?? video.addTextTrack("chapters", "Chapters");
  chapterTracks.set(video, track);
  track.mode = "hidden";
  for (const cue of [...(track.cues ?? [])]) track.removeCue(cue);
  for (const { start, end, title } of chapters) track.addCue(new VTTCue(start, end, asText(title)));
  // The list of chapters is read again on this event.
  video.textTracks.dispatchEvent(new Event("change"));
}

/**
 * After a change of token: tracks that were not fetched yet will be fetched with the new one. Visible ones are
 * unchanged.
 */
export function renewTracks(video: HTMLVideoElement, { subtitles, storyboard_url }: PlayerData): void {
  for (const track of video.querySelectorAll("track")) {
    const same = subtitles.find(({ language, label }) => language === track.srclang && label === track.label);
    // Its thumbnails' URLs contain the token with which it was fetched.
    if (track.kind === "metadata") track.src = storyboard_url ?? track.src;
    else if (same && track.readyState === HTMLTrackElement.NONE) track.src = same.url;
  }
}

/** Languages of visible subtitles, to be shown again after a change of token. */
export const shownSubtitles = (video: HTMLVideoElement) =>
  [...video.textTracks]
    .filter(({ kind, mode }) => (kind === "subtitles" || kind === "captions") && mode === "showing")
    .map((each) => each.label);
