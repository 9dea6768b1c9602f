export type Rendition = { id: string; width: number; height: number; bitrate: number };
/** As media-chrome looks for it on a media element: a list that tells of its changes. -1 is the player's own choice. */
export type RenditionList = Rendition[] & EventTarget & { selectedIndex: number };

export function renditionList(choose: (index: number) => void): RenditionList {
  const events = new EventTarget();
  let selected = -1;
  const list = Object.assign([] as Rendition[], {
    addEventListener: events.addEventListener.bind(events),
    removeEventListener: events.removeEventListener.bind(events),
    dispatchEvent: events.dispatchEvent.bind(events),
  });
  Object.defineProperty(list, "selectedIndex", {
    get: () => selected,
    set(index: number) {
      if (index === selected) return;
      selected = index;
      choose(index);
      events.dispatchEvent(new Event("change"));
    },
  });
  return list as unknown as RenditionList;
}

/** All of another video. */
export function replaceRenditions(list: RenditionList, renditions: readonly Rendition[]): void {
  list.selectedIndex = -1;
  if (list.splice(0).length > 0) list.dispatchEvent(new Event("removerendition"));
  list.push(...renditions);
  if (renditions.length > 0) list.dispatchEvent(new Event("addrendition"));
}
