export type EventList<T> = T[] & EventTarget;

/** A list that emits change events, like those of a media element (HTML, 4.8.11.10). */
export function eventList<T>(): EventList<T> {
  const events = new EventTarget();
  return Object.assign([] as T[], {
    addEventListener: events.addEventListener.bind(events),
    removeEventListener: events.removeEventListener.bind(events),
    dispatchEvent: events.dispatchEvent.bind(events),
  });
}
