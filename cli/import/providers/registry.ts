import type { ImportSourceName } from "#model/import-sources.ts";
import type { Provider } from "../source.ts";

/** The providers by the name that `vodbox import` takes. A provider's code is loaded when it is used. */
export const PROVIDERS: Record<ImportSourceName, () => Promise<Provider>> = {
  mux: async () => (await import("./mux.ts")).mux,
  cloudflare: async () => (await import("./cloudflare.ts")).cloudflare,
  bunny: async () => (await import("./bunny.ts")).bunny,
  peertube: async () => (await import("./peertube.ts")).peertube,
  vimeo: async () => (await import("./vimeo.ts")).vimeo,
  folder: async () => (await import("./folder.ts")).folder,
  s3: async () => (await import("./s3.ts")).s3,
};
