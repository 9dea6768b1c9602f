import { BASE } from "./base.ts";

/**
 * A URL of the API on the origin of this page: the API's may name a CDN, which the page's policy does not allow. `folder`
 * is what its path begins with, such as `/media/`.
 */
export function ownUrl(url: string, folder: "/media/" | "/embed/"): URL {
  const { pathname, search } = new URL(url);
  return new URL(`${BASE}${pathname.slice(pathname.indexOf(folder))}${search}`, location.origin);
}
