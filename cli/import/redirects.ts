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

/** A string of both formats. */
const quoted = (text: string) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

const nginx = (all: Redirect[]) => `# In the http block of nginx. In the server block of the old host name:
#   if ($vodbox_redirect) { return 301 $vodbox_redirect; }
map_hash_max_size ${Math.max(2048, all.length * 2)};
map_hash_bucket_size 1024;
map $uri $vodbox_redirect {
  default "";
${all.map(({ from, to }) => `  ${quoted(from)} ${quoted(to)};\n`).join("")}}
`;

const caddy = (all: Redirect[]) => `# In the site block of the old host name.
map {path} {vodbox_redirect} {
${all
  // Braces are placeholders.
  .filter(({ from }) => !/[{}]/.test(from))
  .map(({ from, to }) => `  ${quoted(from)} ${quoted(to)}\n`)
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
