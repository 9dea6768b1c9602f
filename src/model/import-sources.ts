/** Where `vodbox import` takes videos from: for the command, the API and the console. */
type ImportSource = {
  /** As people write it. */
  title: string;
  /** Environment variables of its credentials. */
  required: readonly string[];
  optional?: readonly string[];
  /** What the command's argument is, where it has one. */
  argument?: string;
};

export const IMPORT_SOURCES = {
  mux: { title: "Mux", required: ["MUX_TOKEN_ID", "MUX_TOKEN_SECRET"] },
  cloudflare: { title: "Cloudflare Stream", required: ["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_API_TOKEN"] },
  bunny: { title: "Bunny Stream", required: ["BUNNY_LIBRARY_ID", "BUNNY_API_KEY", "BUNNY_CDN_HOSTNAME"] },
  peertube: { title: "PeerTube", required: ["PEERTUBE_URL", "PEERTUBE_USERNAME", "PEERTUBE_PASSWORD"] },
  vimeo: { title: "Vimeo", required: ["VIMEO_ACCESS_TOKEN"] },
  folder: { title: "The directory", required: [], argument: "DIRECTORY" },
  s3: {
    title: "The bucket",
    required: ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
    optional: ["AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"],
    argument: "s3://BUCKET/PREFIX",
  },
} as const satisfies Record<string, ImportSource>;

export type ImportSourceName = keyof typeof IMPORT_SOURCES;
export const IMPORT_SOURCE_NAMES = Object.keys(IMPORT_SOURCES) as [ImportSourceName, ...ImportSourceName[]];

/** What a report of an import says of videos that were not imported: at most so many, of so many bytes as JSON. */
export const MAX_IMPORT_PROBLEMS = 100;
export const MAX_IMPORT_PROBLEM_BYTES = 65_536;
