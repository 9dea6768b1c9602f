import { canonicalLanguage, ownName, UserError } from "#lib/base";
import { RequestRefused } from "../push/http.ts";
import type { FileSender } from "../push/send.ts";
import type { Caption, Chapter, Item } from "./source.ts";

/** Limits of the API for chapters (docs/api.md). */
const MAX_CHAPTERS = 500;
const MAX_CHAPTER_TITLE = 300;
const MAX_LABEL = 200;

export type Attached = { captions: number; problems: string[] };

/**
 * Gives an asset the captions, chapters and thumbnail of its video. Repeatable: what it has already is left alone, or
 * replaced with the same. Returns what could not be imported, with reasons.
 */
export async function attach(sender: FileSender, assetId: number, item: Item): Promise<Attached> {
  const problems: string[] = [];
  const attempt = async (name: string, work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      // The server is out of reach, or refuses all of it: the import ends.
      if (error instanceof UserError && !(error instanceof RequestRefused && error.status !== 401)) throw error;
      problems.push(`${name}: ${(error as Error).message.replace(/\.$/, "")}`);
    }
  };
  const captions = await attachCaptions(sender, assetId, { captions: item.captions, attempt });
  if (item.chapters.length > 0)
    await attempt("chapters", async () => {
      await attachChapters(sender, assetId, item.chapters);
      if (item.chapters.length > MAX_CHAPTERS)
        throw new Error(`only the first ${MAX_CHAPTERS} of ${item.chapters.length} were imported`);
    });
  const { thumbnail } = item;
  if (thumbnail) await attempt("thumbnail", async () => attachThumbnail(sender, assetId, await thumbnail()));
  return { captions, problems };
}

type Captions = {
  captions: readonly Caption[];
  attempt(name: string, work: () => Promise<void>): Promise<void>;
};

/** Returns how many of them the asset has. */
async function attachCaptions(
  { call, patience }: FileSender,
  assetId: number,
  { captions, attempt }: Captions,
): Promise<number> {
  if (captions.length === 0) return 0;
  const path = `/assets/${assetId}/subtitles`;
  const present = new Set(
    (await patience.until(() => call<{ language: string }[]>("GET", path))).map(({ language }) => language),
  );
  const own = new Set<string>();
  for (const { language: named, label, isForDeaf, read } of captions)
    await attempt(`captions ${named}`, async () => {
      // Some providers write `pt_BR`.
      const language = canonicalLanguage(named.replaceAll("_", "-"));
      if (language === null) throw new Error("the language is not a BCP 47 tag");
      if (own.has(language)) throw new Error("the video has several captions of this language");
      if (!present.has(language)) {
        const content = await read();
        // The server detects TTML by its content.
        const isVtt = Buffer.from(content.subarray(0, 9)).toString("utf8").replace("\ufeff", "").startsWith("WEBVTT");
        await patience.until(() => {
          const form = new FormData();
          form.set("language", language);
          if (isForDeaf) form.set("role", "caption");
          form.set("label", label.trim().slice(0, MAX_LABEL).toWellFormed() || ownName(language));
          form.set("file", new Blob([new Uint8Array(content)]), isVtt ? "captions.vtt" : "captions.srt");
          return call("POST", path, form);
        });
      }
      own.add(language);
    });
  return own.size;
}

function attachChapters({ call, patience }: FileSender, assetId: number, chapters: readonly Chapter[]) {
  const cues = chapters.slice(0, MAX_CHAPTERS).map(({ startMs, endMs, title }) => ({
    start_ms: Math.round(startMs),
    ...(endMs !== undefined && endMs >= startMs && { end_ms: Math.round(endMs) }),
    payload: { title: title.slice(0, MAX_CHAPTER_TITLE).toWellFormed() },
  }));
  const body = { kind: "chapter", name: "default", source: "import", cues };
  return patience.until(() => call("POST", `/assets/${assetId}/tracks`, body));
}

/** By its first bytes; the server verifies the rest. */
function imageType(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.subarray(0, 12)).toString("hex");
  if (hex.startsWith("ffd8ff")) return "image/jpeg";
  if (hex.startsWith("89504e47")) return "image/png";
  if (/^52494646.{8}57454250/.test(hex)) return "image/webp";
  throw new Error("it is not a JPEG, PNG or WebP image");
}

async function attachThumbnail({ call, patience }: FileSender, assetId: number, image: Uint8Array): Promise<void> {
  const type = imageType(image);
  const body = new Blob([new Uint8Array(image)], { type });
  await patience.until(() => call("PUT", `/assets/${assetId}/poster`, body, { headers: { "content-type": type } }));
}
