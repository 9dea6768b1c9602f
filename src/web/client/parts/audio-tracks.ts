import type { EventList } from "./event-list.ts";

/** An audio track, as in the manifest. */
export type AudioTrack = { label: string; language: string };
export type ListedAudioTrack = AudioTrack & { id: string; kind: string; enabled: boolean };

/** All tracks, one of which is enabled; `choose` is called when another one is enabled. */
export function replaceAudioTracks(
  list: EventList<ListedAudioTrack>,
  tracks: readonly AudioTrack[],
  heard: number,
  choose: (index: number) => void,
): void {
  const isSame = list.length === tracks.length && list.every(({ label }, index) => label === tracks[index]?.label);
  list.splice(
    0,
    list.length,
    ...tracks.map((track, index) => ({
      ...track,
      id: String(index),
      kind: index === 0 ? "main" : "alternative",
      get enabled() {
        return index === heard;
      },
      // media-chrome also disables all others explicitly.
      set enabled(isWanted) {
        if (isWanted && index !== heard) choose(index);
      },
    })),
  );
  list.dispatchEvent(new Event(isSame ? "change" : "addtrack"));
}
