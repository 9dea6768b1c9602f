/** The list of a playlist page: plays the entry that was chosen, and the next one when a video has ended. */

type Player = HTMLElement & { readonly video: HTMLVideoElement; play(): Promise<void> };

const REMEMBERED = "vodbox-autoplay";
const player = document.querySelector<Player>("svc-player");
const links = [...document.querySelectorAll<HTMLAnchorElement>(".list a[data-id]")];
const autoplay = document.querySelector<HTMLInputElement>("#autoplay");
const previous = document.querySelector<HTMLButtonElement>("#previous");
const next = document.querySelector<HTMLButtonElement>("#next");

/** A browser may store nothing for this page. */
function remembered(value?: string): string | null {
  try {
    if (value !== undefined) localStorage.setItem(REMEMBERED, value);
    return localStorage.getItem(REMEMBERED);
  } catch {
    return null;
  }
}

if (player && autoplay && previous && next) {
  let current = Math.max(
    0,
    links.findIndex((link) => link.hasAttribute("aria-current")),
  );
  const show = () => {
    for (const [index, link] of links.entries())
      if (index === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    previous.disabled = current === 0;
    next.disabled = current === links.length - 1;
    // Not scrollIntoView: that would scroll the page around the frame too.
    const link = links[current];
    const list = link?.closest<HTMLElement>(".list");
    if (link && list) list.scrollTop = link.offsetTop - list.clientHeight / 3;
  };
  const play = (index: number) => {
    const link = links[index];
    if (!link) return;
    current = index;
    // Volume and mute stay as the viewer has set them.
    player.setAttribute("autoplay", "");
    player.setAttribute("playback-id", link.dataset.id ?? "");
    if (player.hasAttribute("video-title"))
      player.setAttribute("video-title", link.querySelector("strong")?.textContent ?? "");
    show();
  };
  autoplay.checked = remembered() !== "off";
  autoplay.addEventListener("change", () => remembered(autoplay.checked ? "on" : "off"));
  previous.addEventListener("click", () => play(current - 1));
  next.addEventListener("click", () => play(current + 1));
  for (const [index, link] of links.entries())
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      play(index);
    });
  player.video.addEventListener("ended", () => {
    if (autoplay.checked) play(current + 1);
  });
  show();
}
