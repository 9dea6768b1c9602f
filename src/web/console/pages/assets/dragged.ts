import type { Selection } from "./selection.ts";

/** What is being dragged in this page. The browser passes only texts, and not before the drop. */
export type Dragged = { assets: Selection } | { collection: number };
let current: Dragged | null = null;

export const dragged = {
  get: (): Dragged | null => current,
  start(event: DragEvent, what: Dragged): void {
    current = what;
    if (!event.dataTransfer) return;
    event.dataTransfer.effectAllowed = "move";
    // Firefox drags nothing that has no data.
    event.dataTransfer.setData("text/plain", "");
  },
  end(): void {
    current = null;
  },
};
