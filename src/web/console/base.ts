/** The path of the server's base URL, such as `/video` behind a proxy; empty without one. */
export const BASE = document.documentElement.dataset.base ?? "";

/** The name of the OpenID provider with which people can sign in; undefined without one. */
export const OIDC_NAME = document.documentElement.dataset.oidc;

/** The path of a page of the console. */
export const pagePath = (page: string) => `${BASE}/console/${page}`;
