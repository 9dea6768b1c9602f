import { runToEnd } from "#lib/base/web";
import { type SpokenCue, spokenCues } from "#lib/subtitles/web";
import { clock } from "../clock.ts";
import { copyText } from "../copy-text.ts";
import { styleNonce } from "../own-script.ts";
import type { PlayerData } from "../player-data.ts";
import { FORMATS, withTimes } from "./formats.ts";
import { PLAYER_STYLE, STYLE } from "./style.ts";
import { textsIn } from "./texts.ts";

/** Lines that are added at once: a long text does not stop the page. */
const LINES_PER_STEP = 300;
const COPIED_MS = 2000;

export type Spoken = {
  video: HTMLVideoElement;
  subtitles: PlayerData["subtitles"];
  title: string;
  /** BCP 47 tag of the subtitles that are shown first. */
  chosen: string | null;
  /** BCP 47 tag for the panel's own texts. */
  language: string;
};

type Fields<K extends keyof HTMLElementTagNameMap> = Partial<HTMLElementTagNameMap[K]> & { label?: string };

/** `label` is its name for screen readers; not all browsers have the property `ariaLabel`. */
function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  { label, ...fields }: Fields<K> = {},
  children: readonly (Node | string)[] = [],
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(name), fields);
  if (label) made.setAttribute("aria-label", label);
  made.append(...children);
  return made;
}

function styled(css: string): DocumentFragment {
  const template = document.createElement("template");
  template.innerHTML = `<style${styleNonce}>${css}</style>`;
  return template.content;
}

/**
 * `<svc-transcript>`: the lines of a video's subtitles. The one that is spoken has `aria-current`; a click on a line seeks
 * to it.
 */
export class SvcTranscript extends HTMLElement {
  readonly #root = this.attachShadow({ mode: "open" });
  /** Aborts with the video that is shown. */
  #showing = new AbortController();
  /** Aborts with its language. */
  #reading = new AbortController();
  #lines: SpokenCue[] = [];
  #list = element("ol");
  #current: HTMLElement | null = null;

  /** Shows another video, or nothing. */
  show(spoken: Spoken | null): void {
    this.#showing.abort();
    this.#reading.abort();
    this.#showing = new AbortController();
    this.#root.replaceChildren();
    this.hidden = !spoken || spoken.subtitles.length === 0;
    if (!spoken || this.hidden) return;
    const { subtitles, chosen, video, language } = spoken;
    const t = textsIn(language);
    // Below the video the panel is in the player's shadow tree, to which styles of its own children apply.
    this.replaceChildren(...(this.getRootNode() instanceof ShadowRoot ? [styled(PLAYER_STYLE)] : []));
    const first = Math.max(
      0,
      subtitles.findIndex((one) => (chosen === null ? one.is_default : one.language === chosen)),
    );
    const read = (index: number) => void this.#read(spoken, index);
    this.#root.append(
      styled(STYLE),
      element("section", { label: t.transcript }, [
        element("header", {}, [
          element("h2", { textContent: t.transcript }),
          ...(subtitles.length > 1 ? [this.#languages(subtitles, first, { label: t.language, read })] : []),
          this.#copyButton(t),
          ...this.#downloadButtons(spoken, t.download),
        ]),
        this.#list,
      ]),
    );
    const { signal } = this.#showing;
    for (const name of ["timeupdate", "seeking", "seeked"])
      video.addEventListener(name, () => this.#follow(video), { signal });
    read(first);
  }

  #languages(
    subtitles: Spoken["subtitles"],
    first: number,
    { label, read }: { label: string; read: (index: number) => void },
  ): HTMLElement {
    const choice = element(
      "select",
      { label },
      subtitles.map((one) => element("option", { textContent: one.label })),
    );
    choice.selectedIndex = first;
    choice.addEventListener("change", () => read(choice.selectedIndex));
    return choice;
  }

  #copyButton({ copy, copied }: { copy: string; copied: string }): HTMLElement {
    const button = element("button", { type: "button", textContent: copy });
    button.addEventListener("click", async () => {
      await copyText(withTimes(this.#lines));
      button.textContent = copied;
      setTimeout(() => {
        button.textContent = copy;
      }, COPIED_MS);
    });
    return button;
  }

  #downloadButtons({ title, subtitles }: Spoken, label: string): HTMLElement[] {
    return Object.entries(FORMATS).map(([format, { type, write }]) => {
      const button = element("button", { type: "button", textContent: format, label: `${label} ${format}` });
      button.addEventListener("click", () => {
        const language = this.#list.lang || (subtitles[0]?.language ?? "");
        const href = URL.createObjectURL(new Blob([write(this.#lines)], { type: `${type};charset=utf-8` }));
        element("a", { href, download: `${title}.${language}.${format.toLowerCase()}` }).click();
        URL.revokeObjectURL(href);
      });
      return button;
    });
  }

  async #read({ video, subtitles, language }: Spoken, index: number): Promise<void> {
    this.#reading.abort();
    this.#reading = new AbortController();
    const { signal } = this.#reading;
    this.#lines = [];
    this.#current = null;
    const list = element("ol", { lang: subtitles[index]?.language ?? "" });
    this.#list.replaceWith(list);
    this.#list = list;
    try {
      const answer = await fetch(subtitles[index]?.url as string, {
        signal,
        credentials: "omit",
        referrerPolicy: "no-referrer",
      });
      if (!answer.ok) throw new Error(String(answer.status));
      const lines = runToEnd(spokenCues(await answer.text()));
      if (signal.aborted) return;
      this.#lines = lines;
      await this.#fill(video, signal);
    } catch {
      if (!signal.aborted) list.replaceWith(element("p", { textContent: textsIn(language).failed }));
    }
  }

  async #fill(video: HTMLVideoElement, signal: AbortSignal): Promise<void> {
    const list = this.#list;
    list.addEventListener("keydown", (event) => this.#moveFocus(event));
    for (let at = 0; at < this.#lines.length && !signal.aborted; at += LINES_PER_STEP) {
      list.append(
        ...this.#lines.slice(at, at + LINES_PER_STEP).map(({ text, start_ms }, index) => {
          // One of them is reached by Tab, and the others by the arrow keys.
          const button = element("button", { type: "button", tabIndex: at + index === 0 ? 0 : -1 }, [
            element("time", { textContent: clock(start_ms / 1000) }),
            element("bdi", { textContent: text }),
          ]);
          button.addEventListener("click", () => {
            // The end of a time that was rounded to ms may lie before it.
            video.currentTime = start_ms / 1000 + 0.001;
          });
          return element("li", {}, [button]);
        }),
      );
      this.#follow(video);
      await new Promise((resolve) => setTimeout(resolve));
    }
  }

  #moveFocus(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const item = (event.target as Element).closest("li");
    if (step === undefined || !item) return;
    event.preventDefault();
    const next = (step > 0 ? item.nextElementSibling : item.previousElementSibling)?.querySelector("button");
    if (!next) return;
    this.#makeReachable(next);
    next.focus();
  }

  #makeReachable(button: HTMLElement): void {
    for (const other of this.#list.querySelectorAll<HTMLElement>('[tabindex="0"]')) other.tabIndex = -1;
    button.tabIndex = 0;
  }

  /** Marks the line that is spoken, or was spoken last. */
  #follow(video: HTMLVideoElement): void {
    const ms = video.currentTime * 1000;
    // The number of lines that have begun.
    let low = 0;
    let high = this.#lines.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#lines[middle] as SpokenCue).start_ms <= ms) low = middle + 1;
      else high = middle;
    }
    const item = low === 0 ? null : this.#list.children[low - 1];
    const button = item?.querySelector("button") ?? null;
    if (button === this.#current) return;
    this.#current?.removeAttribute("aria-current");
    this.#current = button;
    if (!button) return;
    button.setAttribute("aria-current", "true");
    const list = this.#list;
    // Not while a viewer reads elsewhere in it.
    if (list.matches(":hover") || list.contains(this.#root.activeElement)) return;
    this.#makeReachable(button);
    // Within the panel only: the page does not move.
    const { offsetTop, offsetHeight } = item as HTMLElement;
    if (offsetTop < list.scrollTop || offsetTop + offsetHeight > list.scrollTop + list.clientHeight)
      list.scrollTop = offsetTop - list.clientHeight / 3;
  }
}
