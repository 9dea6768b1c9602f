/** As a module there is no current script; then it is the one of that name. */
const script =
  document.currentScript instanceof HTMLScriptElement
    ? document.currentScript
    : document.querySelector<HTMLScriptElement>('script[src*="svc-player.js"]');

/** The server that the script came from, on whichever site it runs; ends with a slash. */
export const serverUrl = new URL(".", script?.src || location.href).href;

/**
 * For the style elements of the player's shadow trees: a page that lets the script in by a nonce lets them in by the
 * same one. The build puts it into those of media-chrome.
 */
export const styleNonce: string = script?.nonce ? ` nonce="${script.nonce}"` : "";
