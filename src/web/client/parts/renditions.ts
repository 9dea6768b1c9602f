import { type EventList, eventList } from "./event-list.ts";

export type Rendition = { id: string; width: number; height: number; bitrate: number };
/** The properties that media-chrome expects on a media element. -1 is automatic selection. */
export type RenditionList = EventList<Rendition> & { selectedIndex: number };

export function renditionList(choose: (index: number) => void): RenditionList {
  let selected = -1;
  const list = eventList<Rendition>();
  Object.defineProperty(list, "selectedIndex", {
    get: () => selected,
    set(index: number) {
      if (index === selected) return;
      selected = index;
      choose(index);
      list.dispatchEvent(new Event("change"));
    },
  });
  return list as RenditionList;
}

/** Replaces all with those of another video. */
export function replaceRenditions(list: RenditionList, renditions: readonly Rendition[]): void {
  list.selectedIndex = -1;
  if (list.splice(0).length > 0) list.dispatchEvent(new Event("removerendition"));
  list.push(...renditions);
  if (renditions.length > 0) list.dispatchEvent(new Event("addrendition"));
}
