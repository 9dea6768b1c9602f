import type { EventList } from "./event-list.ts";

/** A track of sound, as the manifest names it. */
export type AudioTrack = { label: string; language: string };
export type ListedAudioTrack = AudioTrack & { id: string; kind: string; enabled: boolean };

/** All of them, of which one is heard; `choose` is called when another one is enabled. */
export function replaceAudioTracks(
  list: EventList<ListedAudioTrack>,
  sounds: readonly AudioTrack[],
  heard: number,
  choose: (index: number) => void,
): void {
  const isSame = list.length === sounds.length && list.every(({ label }, index) => label === sounds[index]?.label);
  list.splice(
    0,
    list.length,
    ...sounds.map((sound, index) => ({
      ...sound,
      id: String(index),
      kind: index === 0 ? "main" : "alternative",
      get enabled() {
        return index === heard;
      },
      // media-chrome also says of all others that they are not.
      set enabled(isWanted) {
        if (isWanted && index !== heard) choose(index);
      },
    })),
  );
  list.dispatchEvent(new Event(isSame ? "change" : "addtrack"));
}
