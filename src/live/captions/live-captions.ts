import { ownName } from "#lib/base";
import { type ShownCaption, settingsOf } from "#lib/closed-captions";
import { escapeText, writeCue } from "#lib/subtitles";
import type { LivePlaylist } from "../playlists/live-playlist.ts";
import { PlaylistWriter } from "../playlists/live-playlist.ts";
import { type CaptionRendition, MEDIA_VERSION } from "../playlists/multivariant-playlist.ts";
import { captionName } from "../playlists/names.ts";
import type { Segment, TrackWindow } from "../playlists/track-window.ts";

/** The most captions of each service: more than people could read in a window of 12 hours. */
const MAX_CAPTIONS = 20_000;
/** RFC 8216, 3.5. The media timeline of all tracks begins at 0. */
const HEADER = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n";

/** The closed captions of a running stream, as viewers receive them: a WebVTT segment for each segment of video. */
export class LiveCaptions {
  /** In the order of time. */
  readonly #shown = new Map<string, ShownCaption[]>();
  readonly #languages = new Map<string, string>();
  #rendered: { key: string; playlist: LivePlaylist } | null = null;

  /** Captions of this service may follow. */
  announce(service: string, language?: string): void {
    if (!this.#shown.has(service)) this.#shown.set(service, []);
    if (language !== undefined) this.#languages.set(service, language);
  }

  add(caption: ShownCaption): void {
    this.announce(caption.service, caption.language);
    const all = this.#shown.get(caption.service) as ShownCaption[];
    all.push(caption);
    // Half of them at once: each removal copies the others.
    if (all.length > MAX_CAPTIONS) all.splice(0, MAX_CAPTIONS / 2);
  }

  has(name: string): boolean {
    return this.#shown.has(name);
  }

  /** For the multivariant playlist. */
  get renditions(): CaptionRendition[] {
    return [...this.#shown.keys()].sort().map((service) => {
      const language = this.#languages.get(service) ?? null;
      return { name: language === null ? service.toUpperCase() : ownName(language), track: service, language };
    });
  }

  /** What is shown in a segment. Linear in the captions of the segment, and logarithmic in those of the stream. */
  segment(
    service: string,
    { startSeconds, durationSeconds }: Pick<Segment, "startSeconds" | "durationSeconds">,
  ): string {
    const startMs = startSeconds * 1000;
    const endMs = (startSeconds + durationSeconds) * 1000;
    const all = this.#shown.get(service) ?? [];
    let low = 0;
    let high = all.length;
    // The first one that ends after the start. Segments end captions, so their ends are in order too.
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((all[middle] as ShownCaption).endMs <= startMs) low = middle + 1;
      else high = middle;
    }
    let text = HEADER;
    for (let at = low; at < all.length; at++) {
      const caption = all[at] as ShownCaption;
      if (caption.startMs >= endMs) break;
      // Captions of recognized speech are not divided by segments yet.
      const from = Math.max(caption.startMs, Math.round(startMs));
      const to = Math.min(caption.endMs, Math.round(endMs));
      if (from >= to) continue;
      const shown = { startMs: from, endMs: to, settings: settingsOf(caption.row), text: escapeText(caption.text) };
      text += `\n${writeCue({ id: null, ...shown })}\n`;
    }
    return text;
  }

  /** The playlist of a service: it has the segments of `track`, the video, with their dates and discontinuities. */
  playlist(track: TrackWindow, { targetSeconds, isEnded }: { targetSeconds: number; isEnded: boolean }): LivePlaylist {
    const key = [track.firstNumber, track.lastNumber, track.isDiscontinuityNext, isEnded].join();
    if (this.#rendered?.key === key) return this.#rendered.playlist;
    const writer = new PlaylistWriter();
    writer.add(`#EXTM3U\n#EXT-X-VERSION:${MEDIA_VERSION}\n#EXT-X-TARGETDURATION:${targetSeconds}\n`);
    writer.add(
      `#EXT-X-MEDIA-SEQUENCE:${track.firstNumber}\n#EXT-X-DISCONTINUITY-SEQUENCE:${track.discontinuitySequence}\n`,
    );
    for (let number = track.firstNumber; number <= track.lastNumber; number++) {
      const { head, info } = track.segment(number) as Segment;
      writer.add(head).add(info).addUri(captionName(number)).add("\n");
    }
    if (isEnded) writer.add("#EXT-X-ENDLIST\n");
    else if (track.isDiscontinuityNext && !track.open) writer.add("#EXT-X-DISCONTINUITY\n");
    const playlist = writer.end();
    this.#rendered = { key, playlist };
    return playlist;
  }
}
