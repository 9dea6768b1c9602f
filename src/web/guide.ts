import * as v from "valibot";
import { notFound } from "#lib/base";
import { embeddedNames } from "#lib/executable";
import { type Context, Reply, type Route, route } from "#platform/http/route.ts";
import { embeddedFile, typeOf } from "./embedded-file.ts";
import { pagePolicy, policyText } from "./html-response.ts";

const FOLDER = "guide/";
const SCRIPT = "guide.js";
/** Pages have no inline scripts or styles: all they load are files of the guide. */
const PAGE_HEADERS = {
  "content-security-policy": policyText({ ...pagePolicy("'self'"), "img-src": "'self'", "connect-src": "'self'" }),
  "referrer-policy": "no-referrer",
};

let names: Set<string> | undefined;
/** Names of the guide's files, most of which are only compressed in the executable. */
function files(): Set<string> {
  names ??= new Set(embeddedNames(FOLDER).map((name) => name.slice(FOLDER.length).replace(/\.br$/, "")));
  return names;
}

function send(context: Context<{ name: string }>): Promise<Response> {
  const { name } = context.params;
  const type = typeOf(name);
  if (type === undefined || !(name === SCRIPT || files().has(name))) notFound("page");
  const file = name === SCRIPT ? `web/${SCRIPT}` : `${FOLDER}${name}`;
  const more: Record<string, string> = name.endsWith(".html") ? PAGE_HEADERS : {};
  return embeddedFile(context, file, { type, cacheControl: "public, no-cache", more });
}

const open = { method: "GET", credential: "none", tag: "Documents", hidden: true, responses: { 200: null } } as const;

/** The documents as pages with a search, which the build wrote (scripts/guide); they work offline. */
export const guideRoutes: Route[] = [
  route({
    ...open,
    path: "/docs/guide",
    summary: "Show the guide",
    // Relative, so that it is right below the path of a proxy.
    handle: () => new Reply(302, null, { location: "guide/index.html" }),
  }),
  route({
    ...open,
    path: "/docs/guide/:name",
    summary: "Get a file of the guide",
    params: v.object({ name: v.string() }),
    handle: send,
  }),
];
