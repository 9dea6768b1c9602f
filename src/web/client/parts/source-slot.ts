import { type ListedAudioTrack, replaceAudioTracks } from "./audio-tracks.ts";
import { eventList } from "./event-list.ts";
import { serverUrl } from "./own-script.ts";
import type { PlayerData } from "./player-data.ts";
import { renditionList, replaceRenditions } from "./renditions.ts";
import { isNative, openSource, type Source, type SourceOptions } from "./source.ts";

export type Policy = PlayerData["playback_policy"];
export type Opening = Omit<SourceOptions, "isOwn" | "cmcd" | "onRenditions" | "onAudioTracks"> & { policy: Policy };

/** The source of a video element, or none, and the renditions and audio tracks that media-chrome lists. */
export class SourceSlot {
  readonly video: HTMLVideoElement;
  readonly audioTracks = eventList<ListedAudioTrack>();
  readonly renditions = renditionList((index) => this.current?.chooseRendition(index));
  current: Source | null = null;
  /** The id of the beacons' session; null: nothing is reported. */
  session: string | null = null;
  /** Aborts with the current source, or the one that opens when the viewer presses play. */
  #pending = new AbortController();

  constructor(video: HTMLVideoElement) {
    this.video = video;
  }

  /** Gives the video element the properties that media-chrome reads. */
  expose(): void {
    const { renditions, audioTracks, video } = this;
    const lists = { videoRenditions: renditions, videoTracks: new EventTarget(), audioTracks };
    // Safari's two properties cannot be set by a script; it detects by itself what it plays.
    for (const [name, value] of Object.entries(lists))
      if (!(name in video && isNative(video))) Object.defineProperty(video, name, { value });
    // It decides by this whether the viewer is live.
    Object.defineProperty(video, "liveEdgeStart", { get: () => this.current?.liveEdge()?.start ?? Number.NaN });
  }

  /** Opens a source now or, unless it is loaded before, when the viewer presses play. */
  open(opening: () => Opening, isLoaded: boolean): void {
    const open = () => this.#open(opening());
    // Already playing if the page called play() before the data arrived.
    if (isLoaded || !this.video.paused) open();
    else this.video.addEventListener("play", open, { once: true, signal: this.#pending.signal });
  }

  #open({ policy, token, ...options }: Opening): void {
    this.current = openSource(this.video, {
      ...options,
      isOwn: options.url.startsWith(serverUrl),
      cmcd:
        this.session === null ? null : { id: this.session, content: contentOf(options.url), isLive: options.isLive },
      token: policy === "signed" ? token : null,
      onRenditions: (renditions) => replaceRenditions(this.renditions, renditions),
      onAudioTracks: (tracks, heard) =>
        replaceAudioTracks(this.audioTracks, tracks, heard, (index) => this.current?.chooseAudio(index)),
    });
  }

  close(): void {
    this.#pending.abort();
    this.#pending = new AbortController();
    this.current?.close();
    this.current = null;
    replaceRenditions(this.renditions, []);
    replaceAudioTracks(this.audioTracks, [], -1, () => {});
  }
}

/** The id of a video, or `live/` and the name of a channel, from the URL of a playlist. */
const contentOf = (url: string) => /\/(?:media\/|(?=live\/))((?:live\/)?[^/?#]+)/.exec(url)?.[1] ?? "";
