import { createIndicator, createMenuItem, MediaChromeMenu } from "media-chrome/dist/menu/media-chrome-menu.js";
import { MediaChromeMenuButton } from "media-chrome/dist/menu/media-chrome-menu-button.js";
import { clock } from "./clock.ts";
import { words } from "./messages.ts";
import { styleNonce } from "./own-script.ts";
import type { Chapter } from "./player-data.ts";

const ICON = `<svg aria-hidden="true" viewBox="0 0 24 24"><path d="M4 6h2v2H4V6Zm4 0h12v2H8V6ZM4 11h2v2H4v-2Zm4 0h12v2H8v-2ZM4 16h2v2H4v-2Zm4 0h12v2H8v-2Z"/></svg>`;

class ChapterMenu extends MediaChromeMenu {
  /** The button, next to which the menu opens. */
  override get anchorElement(): HTMLElement {
    return this.parentElement?.querySelector("svc-chapter-menu-button") as HTMLElement;
  }
}

class ChapterMenuButton extends MediaChromeMenuButton {
  static override getSlotTemplateHTML = (): string =>
    `<style${styleNonce}>:host([aria-expanded="true"]) slot[name=tooltip]{display:none}</style><slot name="icon">${ICON}</slot>`;
  static override getTooltipContentHTML = (): string => words("Chapters");
  override get invokeTargetElement(): HTMLElement | null {
    return this.closest("media-controller")?.querySelector<HTMLElement>("svc-chapter-menu") ?? null;
  }
}

if (!customElements.get("svc-chapter-menu")) {
  customElements.define("svc-chapter-menu", ChapterMenu);
  customElements.define("svc-chapter-menu-button", ChapterMenuButton);
}

export type ChapterList = {
  /** Shows these, or no button for none; once the menu is in the player. */
  show(chapters: readonly Chapter[]): void;
  /** The menu is in the player. */
  ready(): void;
};

/** A menu of the video's chapters: it seeks to the one that is chosen, and marks the current one. */
export function chapterMenu(menu: HTMLElement, button: HTMLElement, video: HTMLVideoElement): ChapterList {
  const list = menu as unknown as { value: string; defaultSlot: HTMLSlotElement };
  let current: readonly Chapter[] = [];
  let isReady = false;
  const indexNow = () => current.findLastIndex(({ start }) => start <= video.currentTime + 0.001);

  button.setAttribute("aria-label", words("Chapters"));
  menu.setAttribute("aria-label", words("Chapters"));
  menu.addEventListener("change", () => {
    const chosen = current[Number(list.value)];
    if (chosen) video.currentTime = chosen.start;
  });
  const mark = () => {
    const index = indexNow();
    const items = [...menu.querySelectorAll<HTMLElement & { checked: boolean }>("media-chrome-menu-item")];
    for (const [at, item] of items.entries()) if (item.checked !== (at === index)) item.checked = at === index;
  };
  for (const name of ["timeupdate", "seeked"]) video.addEventListener(name, () => current.length > 0 && mark());

  return {
    ready() {
      isReady = true;
      this.show(current);
    },
    show(chapters) {
      current = chapters;
      if (!isReady) return;
      button.hidden = chapters.length === 0;
      for (const item of menu.querySelectorAll("media-chrome-menu-item")) item.remove();
      const index = indexNow();
      for (const [at, { start, title }] of chapters.entries()) {
        const item = createMenuItem({ type: "radio", text: title, value: String(at), checked: at === index });
        const time = document.createElement("span");
        time.className = "chapter-time";
        time.textContent = clock(start);
        item.prepend(createIndicator(menu, "checked-indicator"), time);
        menu.append(item);
      }
    },
  };
}
