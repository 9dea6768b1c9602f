import type { PlayerData } from "./player-data.ts";
import { type Remembered, remember, remembered } from "./remembered.ts";

/** Requests of media-chrome's controls and shortcuts: they are the viewer's, unlike changes by the page's scripts. */
const AUDIO = ["mediavolumerequest", "mediamuterequest", "mediaunmuterequest"];
const RATE = ["mediaplaybackraterequest"];
const CAPTIONS = ["mediashowsubtitlesrequest", "mediadisablesubtitlesrequest", "mediatogglesubtitlesrequest"];

const isCaptions = ({ kind }: TextTrack) => kind === "subtitles" || kind === "captions";

/** Remembers volume, speed and language of captions when the viewer changes them with the controls. */
export function followChoices(controller: HTMLElement, video: HTMLVideoElement): void {
  const after = (names: string[], read: () => Partial<Remembered>) => {
    const changed = () => {
      const before = JSON.stringify(read());
      // A request that changes nothing is that of a menu, which repeats what a script of the page has set.
      setTimeout(() => JSON.stringify(read()) !== before && remember(read()), 0);
    };
    // Before the controller, which applies the request.
    for (const name of names) controller.addEventListener(name, changed, { capture: true });
  };
  after(AUDIO, () => ({ volume: video.volume, isMuted: video.muted }));
  after(RATE, () => ({ rate: video.playbackRate }));
  after(CAPTIONS, () => ({
    captions: [...video.textTracks].find((track) => isCaptions(track) && track.mode === "showing")?.language ?? null,
  }));
}

/** Applies the viewer's volume and speed to a new player. `isMuted`: the page requires it to start without audio. */
export function applyChoices(video: HTMLVideoElement, { isMuted }: { isMuted: boolean }): void {
  const { volume, isMuted: wasMuted, rate } = remembered();
  if (volume !== undefined) video.volume = volume;
  if (!isMuted && wasMuted !== undefined) video.muted = wasMuted;
  // Loading a source resets the rate to the default one.
  if (rate !== undefined) video.defaultPlaybackRate = video.playbackRate = rate;
}

/**
 * Labels of the captions to show instead of the default ones: those in the viewer's language, none if they were switched off.
 * Null: the viewer has not chosen, or the video does not have the language.
 */
export function chosenCaptions(subtitles: PlayerData["subtitles"]): string[] | null {
  const { captions } = remembered();
  if (captions === undefined) return null;
  if (captions === null) return [];
  const chosen = subtitles.find(({ language }) => language === captions);
  return chosen ? [chosen.label] : null;
}
