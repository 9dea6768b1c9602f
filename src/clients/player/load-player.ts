/** Loads `/svc-player.js` of a server, once for all players of a page. */
export function loadPlayer(server: string, nonce: string | undefined): void {
  if (customElements.get("svc-player")) return;
  const url = new URL("/svc-player.js", server || location.href).href;
  if ([...document.scripts].some(({ src }) => src === url)) return;
  const script = document.createElement("script");
  script.src = url;
  script.async = true;
  if (nonce !== undefined) script.nonce = nonce;
  document.head.append(script);
}
