import "media-chrome/dist/media-airplay-button.js";
import "media-chrome/dist/media-control-bar.js";
import "media-chrome/dist/media-controller.js";
import "media-chrome/dist/media-fullscreen-button.js";
import "media-chrome/dist/media-live-button.js";
import "media-chrome/dist/media-loading-indicator.js";
import "media-chrome/dist/media-mute-button.js";
import "media-chrome/dist/media-pip-button.js";
import "media-chrome/dist/media-play-button.js";
import "media-chrome/dist/media-preview-chapter-display.js";
import "media-chrome/dist/media-preview-thumbnail.js";
import "media-chrome/dist/media-preview-time-display.js";
import "media-chrome/dist/media-seek-backward-button.js";
import "media-chrome/dist/media-seek-forward-button.js";
import "media-chrome/dist/media-time-display.js";
import "media-chrome/dist/media-time-range.js";
import "media-chrome/dist/media-volume-range.js";
import "media-chrome/dist/menu/media-audio-track-menu.js";
import "media-chrome/dist/menu/media-audio-track-menu-button.js";
import "media-chrome/dist/menu/media-captions-menu.js";
import "media-chrome/dist/menu/media-captions-menu-button.js";
import "media-chrome/dist/menu/media-chrome-menu-item.js";
import "media-chrome/dist/menu/media-playback-rate-menu.js";
import "media-chrome/dist/menu/media-playback-rate-menu-button.js";
import "media-chrome/dist/menu/media-rendition-menu.js";
import "media-chrome/dist/menu/media-rendition-menu-button.js";
import { type ChapterList, chapterMenu } from "./chapters.ts";
import { speak, words } from "./messages.ts";
import { styleNonce } from "./own-script.ts";

const STYLE = `
:host{display:block;position:relative;width:100%;aspect-ratio:16/9;background:#000;overflow:hidden;
font-family:system-ui,"Segoe UI",Roboto,Arial,sans-serif;
--_accent:var(--svc-accent-color,#4c8dff);--_text:var(--svc-text-color,#fff);--_bar:var(--svc-control-background,rgb(12 15 20 / .86))}
:host([hidden]){display:none}
:host(:fullscreen){aspect-ratio:auto;width:100vw;height:100vh}
media-controller{width:100%;height:100%;display:block;--media-font-family:inherit;
--media-primary-color:var(--_text);--media-text-color:var(--_text);--media-icon-color:var(--_text);--media-secondary-color:transparent;
--media-control-background:transparent;--media-control-hover-background:rgb(255 255 255 / .14);
--media-range-bar-color:var(--_accent);--media-range-thumb-background:var(--_text);--media-range-track-background:rgb(255 255 255 / .32);
--media-time-range-buffered-color:rgb(255 255 255 / .5);--media-range-track-height:4px;--media-range-track-border-radius:2px;
--media-menu-background:var(--_bar);--media-menu-border-radius:8px;--media-preview-border-radius:6px;
--media-preview-background:var(--_bar);--media-preview-time-background:var(--_bar);--media-preview-chapter-background:var(--_bar);
--media-tooltip-background:var(--_bar);--media-focus-box-shadow:inset 0 0 0 2px var(--_text)}
video{width:100%;height:100%;object-fit:var(--svc-object-fit,contain)}
media-controller:is(:not([userinactive]),[mediapaused]) video::-webkit-media-text-track-container{transform:translateY(-4.6rem)}
.title{align-self:stretch;margin:0;padding:.8rem 1rem 1.8rem;color:var(--_text);font-size:1rem;line-height:1.35;font-weight:600;
background:linear-gradient(rgb(0 0 0 / .72),transparent);text-shadow:0 1px 2px #000;overflow-wrap:anywhere;pointer-events:none}
.title:empty{display:none}
.bars{align-self:stretch;display:flex;flex-direction:column;padding:0 .5rem .25rem;background:linear-gradient(transparent,rgb(0 0 0 / .62) 40%,rgb(0 0 0 / .82))}
media-time-range{--media-control-hover-background:transparent;width:100%;height:1.6rem;padding:0 .5rem}
media-control-bar{width:100%;align-items:center}
media-control-bar>*{border-radius:6px}
.space{flex:1}
media-volume-range{width:5rem}
.logo{position:absolute;top:.8rem;right:1rem;max-width:30%;max-height:min(4rem,18%);pointer-events:none}
.logo[hidden],.download[hidden],.message-shown .logo{display:none}
.download{border:0;padding:10px;background:none;color:var(--_text);line-height:0;cursor:pointer}
.download:hover{background:rgb(255 255 255 / .14)}
.download:focus-visible{outline:0;box-shadow:inset 0 0 0 2px var(--_text)}
.download svg{width:24px;height:24px;fill:currentColor}
.middle{--media-button-icon-width:44px;--media-button-icon-height:44px;padding:22px;border-radius:50%;background:var(--_bar);--media-control-hover-background:var(--_accent)}
media-controller[mediahasplayed] .middle,media-controller:not([mediapaused]) .middle,.message-shown .middle,.message-shown .title,.message-shown .bars{display:none}
.replay{display:none;align-items:center;gap:.5rem;font:inherit;font-weight:600;color:var(--_text);background:var(--_bar);border:0;border-radius:999px;
padding:.7rem 1.3rem;cursor:pointer}
.replay:hover{background:var(--_accent)}
.replay:focus-visible{outline:3px solid var(--_text);outline-offset:2px}
.replay svg{width:1.4rem;height:1.4rem;fill:currentColor}
media-controller[mediaended]:not(.live) .replay{display:flex}
.message-shown .replay,media-controller[mediaended]:not(.live) media-loading-indicator{display:none!important}
svc-chapter-menu-button[hidden]{display:none}
.chapter-time{font-variant-numeric:tabular-nums;opacity:.75;min-width:3.2em;margin-inline-end:.6em;display:inline-block}
svc-chapter-menu{max-height:min(20rem,calc(100% - 4.5rem));overflow-y:auto}
media-loading-indicator{position:absolute;--media-loading-indicator-icon-height:72px}
.message-shown media-loading-indicator{display:none}
media-airplay-button[mediaairplayunavailable],media-pip-button[mediapipunavailable],media-fullscreen-button[mediafullscreenunavailable],
media-volume-range[mediavolumeunavailable],media-rendition-menu-button[mediarenditionunavailable],media-audio-track-menu-button[mediaaudiotrackunavailable],
media-captions-menu-button:not([mediasubtitleslist]){display:none}
media-controller:not([breakpointmd]) :is(media-seek-backward-button,media-seek-forward-button,media-volume-range){display:none}
media-controller:not([breakpointsm]) .middle{--media-button-icon-width:28px;--media-button-icon-height:28px;padding:14px}
media-controller:not([breakpointsm]) .title{padding:.6rem .75rem 1.4rem;font-size:.85rem}
media-controller:not([breakpointsm]) :is(media-pip-button,media-playback-rate-menu-button,.viewers){display:none}
media-live-button[mediatimeislive]{--media-cursor:default}
media-controller:not(.live,.live-again) media-live-button,media-controller:not(.live) .viewers,.viewers:empty,
.live media-playback-rate-menu-button,.live[mediatimeislive] media-time-display{display:none}
.live media-time-range::part(preview-box){display:none}
.viewers{color:var(--_text);font-size:14px;line-height:24px;padding:0 .5rem;white-space:nowrap}
media-live-button{flex:none}
[role=menu]{z-index:1;color:var(--_text);max-width:80%;overflow-wrap:anywhere}
.message{position:absolute;inset:0;display:grid;place-content:center;justify-items:center;gap:1rem;padding:1.25rem;text-align:center;
color:#eef1f5;background:radial-gradient(circle at 50% 35%,rgb(29 37 50 / .94),rgb(10 13 18 / .97) 75%);font-size:1rem;line-height:1.45}
.message[hidden]{display:none}
.message p{margin:0;max-width:34rem}
.countdown{white-space:pre-line;font-size:1.5rem;font-variant-numeric:tabular-nums}
.countdown[hidden]{display:none}
.message button{font:inherit;font-weight:600;color:#0b0e13;background:#eef1f5;border:0;border-radius:8px;padding:.5rem 1.1rem;cursor:pointer}
.message button:focus-visible{outline:3px solid var(--_accent);outline-offset:2px}
.message button[hidden]{display:none}
@media(prefers-reduced-motion:reduce){*{transition:none!important;animation:none!important}}
`;

const MARKUP = `
<media-controller part="controller" noautoseektolive nomutedpref novolumepref nosubtitleslangpref>
<media-loading-indicator slot="centered-chrome" noautohide></media-loading-indicator>
<media-play-button slot="centered-chrome" class="middle" notooltip part="middle-play"></media-play-button>
<button slot="centered-chrome" type="button" class="replay" part="replay"></button>
<div slot="top-chrome" class="title" part="title"></div>
<img class="logo" part="logo" alt="" hidden>
<media-captions-menu hidden anchor="auto"></media-captions-menu>
<media-audio-track-menu hidden anchor="auto"></media-audio-track-menu>
<media-playback-rate-menu hidden anchor="auto" rates="0.5 0.75 1 1.25 1.5 2"></media-playback-rate-menu>
<media-rendition-menu hidden anchor="auto"></media-rendition-menu>
<svc-chapter-menu hidden anchor="auto"></svc-chapter-menu>
<div class="bars" part="controls">
<media-time-range></media-time-range>
<media-control-bar>
<media-play-button></media-play-button>
<media-seek-backward-button seekoffset="10"></media-seek-backward-button>
<media-seek-forward-button seekoffset="10"></media-seek-forward-button>
<media-mute-button></media-mute-button>
<media-volume-range></media-volume-range>
<media-time-display showduration notoggle></media-time-display>
<media-live-button part="live"></media-live-button>
<span class="viewers" part="viewers"></span>
<span class="space"></span>
<svc-chapter-menu-button hidden></svc-chapter-menu-button>
<media-captions-menu-button></media-captions-menu-button>
<media-audio-track-menu-button></media-audio-track-menu-button>
<media-playback-rate-menu-button></media-playback-rate-menu-button>
<media-rendition-menu-button></media-rendition-menu-button>
<button type="button" class="download" part="download" hidden><svg aria-hidden="true" viewBox="0 0 24 24"><path d="M11 4h2v8.2l2.6-2.6L17 11l-5 5-5-5 1.4-1.4 2.6 2.6zM5 18h14v2H5z"/></svg></button>
<media-airplay-button></media-airplay-button>
<media-pip-button></media-pip-button>
<media-fullscreen-button></media-fullscreen-button>
</media-control-bar>
</div>
</media-controller>
<div class="message" part="message" hidden><p></p><p class="countdown" part="countdown" role="timer" hidden></p><button type="button" hidden></button></div>
`;

const REPLAY_ICON = `<svg aria-hidden="true" viewBox="0 0 24 24"><path d="M12 5V1L7 6l5 5V7a6 6 0 1 1-6 6H4a8 8 0 1 0 8-8Z"/></svg>`;

export type Frame = {
  controller: HTMLElement & { fullscreenElement: HTMLElement };
  title: HTMLElement;
  controls: HTMLElement;
  time: HTMLElement;
  viewers: HTMLElement;
  logo: HTMLImageElement;
  download: HTMLButtonElement;
  message: HTMLElement;
  again: HTMLButtonElement;
  countdown: HTMLElement;
  chapters: ChapterList;
};

/** Live, the time is how far the viewer is behind, and hls.js sets the speed. */
export function showLive({ controller, time }: Frame, isLive: boolean): void {
  controller.classList.toggle("live", isLive);
  time.toggleAttribute("remaining", isLive);
  time.toggleAttribute("showduration", !isLive);
}

/**
 * Adds `elements` where they are now, one in each task: together they block a phone for half a second, because
 * media-chrome gives each of them the whole state. `speakAgain`: other players may speak another language meanwhile.
 */
function addInSteps(elements: HTMLElement[], speakAgain: () => void, ready: () => void): void {
  const places = elements.map((element) => {
    const place = new Comment();
    element.replaceWith(place);
    return place;
  });
  // Timers wait a second in a hidden page.
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    speakAgain();
    places.shift()?.replaceWith(elements.shift() as HTMLElement);
    if (elements.length > 0) return port2.postMessage(0);
    port1.close();
    ready();
  };
  port2.postMessage(0);
}

/**
 * The whole user interface around `video`, in `language`. The controls appear once all of them are there, a few tasks
 * later.
 */
export function buildFrame(root: ShadowRoot, video: HTMLVideoElement, language: string): Frame {
  // media-chrome's labels are created with its elements.
  const speakAgain = () => speak(language);
  speakAgain();
  const template = document.createElement("template");
  template.innerHTML = `<style${styleNonce}>${STYLE}</style>${MARKUP}`;
  const content = template.content;
  const find = <T extends Element>(selector: string) => content.querySelector<T>(selector) as T;
  const replay = find<HTMLButtonElement>(".replay");
  replay.innerHTML = REPLAY_ICON;
  replay.append(words("replay"));
  replay.addEventListener("click", () => video.play().catch(() => {}));
  const frame = {
    controller: find<Frame["controller"]>("media-controller"),
    title: find<HTMLElement>(".title"),
    controls: find<HTMLElement>(".bars"),
    time: find<HTMLElement>("media-time-display"),
    viewers: find<HTMLElement>(".viewers"),
    logo: find<HTMLImageElement>(".logo"),
    download: find<HTMLButtonElement>(".download"),
    message: find<HTMLElement>(".message"),
    again: find<HTMLButtonElement>(".message button"),
    countdown: find<HTMLElement>(".countdown"),
    chapters: chapterMenu(find("svc-chapter-menu"), find("svc-chapter-menu-button"), video),
  };
  frame.again.textContent = words("try_again");
  frame.download.setAttribute("aria-label", words("download"));
  const menus = [...content.querySelectorAll<HTMLElement>("[anchor]")];
  // A menu that was opened by mouse does not have the focus, and would not close when another one opens.
  for (const menu of menus)
    content.querySelector(`${menu.localName}-button`)?.addEventListener("click", () => {
      for (const other of menus) if (other !== menu) other.hidden = true;
    });
  video.slot = "media";
  frame.controller.prepend(video);
  const parts = [
    ...content.querySelectorAll<HTMLElement>(
      "media-loading-indicator,.middle,media-time-range,media-control-bar>*,[anchor]",
    ),
  ];
  frame.controls.style.visibility = "hidden";
  addInSteps(parts, speakAgain, () => {
    frame.controls.style.visibility = "";
    frame.chapters.ready();
    // A back button for submenus, which none of these menus has: hidden, but a button where only items are allowed.
    for (const menu of menus) {
      const back = menu.shadowRoot?.querySelector('slot[name="header"] > button');
      back?.replaceWith(...back.querySelectorAll('slot[name="title"]'));
    }
  });
  root.replaceChildren(content);
  return frame;
}
