/** In a module there is no current script; the script is then found by name. */
const script =
  document.currentScript instanceof HTMLScriptElement
    ? document.currentScript
    : document.querySelector<HTMLScriptElement>('script[src*="svc-player.js"]');

/** Empty without one. Scripts that this one adds have the same. */
export const scriptNonce: string = script?.nonce ?? "";

/** The server that the script was loaded from, on any site; ends with a slash. */
export const serverUrl = new URL(".", script?.src || location.href).href;

/**
 * For the style elements of the player's shadow trees: a page that allows the script by a nonce allows them by the same
 * one. The build inserts it into those of media-chrome.
 */
export const styleNonce: string = scriptNonce && ` nonce="${scriptNonce}"`;
