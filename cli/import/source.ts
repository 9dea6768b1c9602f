import type { ProviderClient } from "./client.ts";

export { ItemError } from "./item-error.ts";

/** A video in a provider's list. `data` is what the provider's own code needs to load the rest. */
export type Listed = {
  /** Unique in the source, and the same in every run. */
  id: string;
  title: string;
  /** Null when the list does not contain it. */
  seconds: number | null;
  bytes: number | null;
  data: unknown;
};

/** The best file that the provider has. `bytes` is its exact size, or null when only a download shows it. */
export type Media =
  | { kind: "local"; path: string; bytes: number }
  | { kind: "remote"; url: string; bytes: number | null; withCredentials?: boolean }
  | { kind: "hls"; url: string };

/** `isForDeaf`: with noises and speakers. */
export type Caption = { language: string; label: string; isForDeaf?: boolean; read(): Promise<Uint8Array> };
export type Chapter = { startMs: number; endMs?: number; title: string };

/** A path under which the provider served a video, and what replaces it. */
export type OldPath = { path: string; to: "watch" | "embed" };

/** Everything that is imported of a video. */
export type Item = {
  title: string;
  description: string | null;
  tags: Record<string, string | number | boolean>;
  /** RFC 3339. */
  createdAt: string | null;
  /** Null: the tenant's default. */
  policy: "public" | "signed" | null;
  /** Null: not known, and not verified. */
  seconds: number | null;
  /** Whether `seconds` is rounded. */
  isWholeSeconds?: boolean;
  /** With the extension of the container, if it is known. */
  filename: string;
  media: Media;
  captions: Caption[];
  chapters: Chapter[];
  thumbnail: (() => Promise<Uint8Array>) | null;
  oldPaths: OldPath[];
  /** What is imported otherwise than it was, such as a rendition in place of the original. */
  notes: string[];
  /** What the video has at the provider, but cannot be imported. */
  problems: string[];
};

export type Source = {
  /** Identifies the account, bucket or directory, without secrets. */
  location: string;
  /** In pages of the provider: nothing holds the whole list. */
  list(): AsyncIterable<Listed>;
  /**
   * Loads a video, with URLs that are valid now. A dry run changes nothing at the provider. Throws ItemError for a video that
   * cannot be imported.
   */
  load(listed: Listed, options: { isDryRun: boolean }): Promise<Item>;
  /** Downloads what is not local. */
  client: ProviderClient | null;
  /** Whether the sizes in the list are those of the files that are imported, so that a changed file is noticed. */
  listsExactBytes?: boolean;
};

export type ProviderOptions = {
  /** Argument of the command: a directory, or `s3://bucket/prefix`. */
  from: string | undefined;
  /** Values of the provider's variables. */
  env: Record<string, string>;
  /** Replaces the provider's origin. Without a slash at the end. */
  apiUrl: string | undefined;
};

export type Provider = {
  /** As people write it. */
  title: string;
  /** Environment variables that must be set. */
  required: readonly string[];
  optional?: readonly string[];
  /** What the command's argument is, if the provider needs one. */
  argument?: string;
  open(options: ProviderOptions): Promise<Source>;
};

/** Limits of the API for captions and posters. */
export const MAX_CAPTION_BYTES = 2 * 2 ** 20;
export const MAX_IMAGE_BYTES = 10 * 2 ** 20;

/** An item without anything but its media. */
export const plainItem = (fields: Pick<Item, "title" | "filename" | "media"> & Partial<Item>): Item => ({
  description: null,
  tags: {},
  createdAt: null,
  policy: null,
  seconds: null,
  captions: [],
  chapters: [],
  thumbnail: null,
  oldPaths: [],
  notes: [],
  problems: [],
  ...fields,
});
