import type { Entry } from "./ledger.ts";
import type { OldPath } from "./source.ts";

export const REDIRECT_FORMATS = ["nginx", "caddy", "csv"] as const;
export type RedirectFormat = (typeof REDIRECT_FORMATS)[number];

type Redirect = { from: string; to: string };

/** Redirects from the provider's paths to the imported videos, as a configuration file. Paths that it cannot express are left out. */
export async function redirects(entries: Iterable<Entry>, base: string, format: RedirectFormat): Promise<string> {
  const all: Redirect[] = [];
  const seen = new Set<string>();
  for (const { assetId, stage, externalId, oldPaths = [] } of entries) {
    if (assetId === undefined || stage === undefined) continue;
    for (const { path, to } of oldPaths) {
      // A path is redirected once: nginx refuses a map with the same name twice.
      if (seen.has(path)) continue;
      seen.add(path);
      all.push({ from: path, to: `${base}/${to}/${externalId}` });
    }
  }
  if (format === "csv") {
    const { stringify } = await import("csv-stringify/sync");
    return stringify([["from", "to"], ...all.map(({ from, to }) => [from, to])]);
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they would end a line of the file
  const possible = all.filter(({ from }) => !/[\x00-\x1f\x7f]/.test(from));
  return format === "nginx" ? nginx(possible) : caddy(possible);
}

/** A string of nginx. */
const quoted = (text: string) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
/** A string of Caddy, in which a backslash is an escape before a quotation mark only; none is at its end. */
const caddyQuoted = (text: string) => `"${text.replaceAll('"', '\\"')}"`;

/** nginx compares names without regard to case, and refuses a map that has one of them twice. */
const folded = (path: string) => path.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** The name of a path in a map of nginx; a regular expression, which regards case, for one that differs from another by case only. */
const nginxName = (from: string, isUnique: boolean) =>
  quoted(isUnique ? from : `~^${from.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`);

/** Bytes of a name in the hash of nginx besides its characters. */
const NGINX_NAME = 64;
const NGINX_MAX_BUCKET = 32_768;

function nginx(all: Redirect[]): string {
  const counts = new Map<string, number>();
  for (const { from } of all) counts.set(folded(from), (counts.get(folded(from)) ?? 0) + 1);
  let bucket = 1024;
  const lines = all
    .filter(({ from }) => Buffer.byteLength(from) + NGINX_NAME <= NGINX_MAX_BUCKET)
    .map(({ from, to }) => {
      while (Buffer.byteLength(from) + NGINX_NAME > bucket) bucket *= 2;
      return `  ${nginxName(from, counts.get(folded(from)) === 1)} ${quoted(to)};\n`;
    });
  return `# In the http block of nginx. In the server block of the old host name:
#   if ($vodbox_redirect) { return 301 $vodbox_redirect; }
map_hash_max_size ${Math.max(2048, all.length * 2)};
map_hash_bucket_size ${bucket};
map $uri $vodbox_redirect {
  default "";
${lines.join("")}}
`;
}

const caddy = (all: Redirect[]) => `# In the site block of the old host name.
map {path} {vodbox_redirect} {
${all
  // Braces are placeholders, and a backslash before a quotation mark or at the end cannot be written.
  .filter(({ from }) => !/[{}]|\\(?:"|$)/.test(from))
  .map(({ from, to }) => `  ${caddyQuoted(from)} ${caddyQuoted(to)}\n`)
  .join("")}  default ""
}
@vodbox_redirect expression \`{vodbox_redirect} != ""\`
redir @vodbox_redirect {vodbox_redirect} permanent
`;

/** Paths of old URLs, each part percent-decoded as proxies compare them. */
export const oldPaths = (watch: readonly string[], embed: readonly string[] = []): OldPath[] => [
  ...watch.map((path): OldPath => ({ path, to: "watch" })),
  ...embed.map((path): OldPath => ({ path, to: "embed" })),
];
