/** The path of the server's base URL, such as `/video` behind a proxy; empty without one. */
export const BASE = document.documentElement.dataset.base ?? "";

/** The path of a page of the console. */
export const pagePath = (page: string) => `${BASE}/console/${page}`;
