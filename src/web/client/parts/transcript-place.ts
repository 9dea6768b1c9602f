import { languageAt } from "./messages.ts";
import { scriptNonce, serverUrl } from "./own-script.ts";
import type { PlayerData } from "./player-data.ts";
import { shownSubtitles } from "./tracks.ts";
import type { Spoken, SvcTranscript } from "./transcript/panel.ts";

let loading = false;

/** The panel's script, once: most pages do not show what is said. */
function loadPanel(): void {
  if (loading || customElements.get("svc-transcript")) return;
  loading = true;
  const script = Object.assign(document.createElement("script"), { src: `${serverUrl}svc-transcript.js` });
  if (scriptNonce) script.nonce = scriptNonce;
  document.head.append(script);
}

/** Where a player shows what is said: in the page's element that its attribute `transcript` names by id, else below the video. */
export class TranscriptPlace {
  readonly #player: HTMLElement & { video: HTMLVideoElement };
  #panel: HTMLElement | null = null;
  #spoken: Spoken | null = null;

  constructor(player: HTMLElement & { video: HTMLVideoElement }) {
    this.#player = player;
  }

  /** Shows what this video says, first in the language of the captions that are shown, or nothing. */
  show(data: PlayerData | null): void {
    const { video } = this.#player;
    const [shown] = shownSubtitles(video);
    this.#spoken = data && {
      video,
      subtitles: data.subtitles,
      title: data.title,
      language: languageAt(this.#player),
      chosen: data.subtitles.find(({ label }) => label === shown)?.language ?? null,
    };
    this.update();
  }

  /** After a change of the attribute. */
  update(): void {
    const id = this.#player.getAttribute("transcript");
    if (id === null || (!this.#panel && !this.#spoken?.subtitles.length)) return void this.remove();
    this.#panel ??= document.createElement("svc-transcript");
    const place = (id && document.getElementById(id)) || this.#player.shadowRoot;
    if (this.#panel.parentNode !== place) {
      // What a page contains for readers without scripts.
      if (place instanceof Element) place.replaceChildren();
      place?.append(this.#panel);
    }
    loadPanel();
    const panel = this.#panel as SvcTranscript;
    void customElements.whenDefined("svc-transcript").then(() => {
      if (panel === this.#panel) panel.show(this.#spoken);
    });
  }

  remove(): void {
    this.#panel?.remove();
    this.#panel = null;
  }
}
