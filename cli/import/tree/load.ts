import { languageOfTtml } from "#lib/subtitles";
import { fileNameOf } from "#model/object-keys.ts";
import { type Caption, type Item, ItemError, type Media, plainItem } from "../source.ts";
import type { TreeFile, TreeItem } from "./group.ts";
import { type Metadata, metadataOfJson, metadataOfNfo } from "./metadata.ts";

const MAX_METADATA_BYTES = 2 ** 20;
/** Limits of the API. */
const MAX_CAPTION_BYTES = 2 * 2 ** 20;
const MAX_IMAGE_BYTES = 10 * 2 ** 20;

/** A video of a directory or bucket, with what its side-car files say. */
export async function loadTreeItem({ video, sideCars }: TreeItem, media: Media): Promise<Item> {
  const name = fileNameOf(video.path);
  const stem = video.path.slice(0, video.path.lastIndexOf("."));
  const problems: string[] = [];
  const metadata: Metadata = {};
  const captions: Caption[] = [];
  let image: TreeFile | null = null;
  for (const file of sideCars) {
    const rest = file.path.slice(stem.length + 1);
    const read = async (parse: (content: string) => Metadata) => {
      try {
        const { tags, ...fields } = parse(Buffer.from(await file.read(MAX_METADATA_BYTES)).toString("utf8"));
        Object.assign(metadata, fields, { tags: { ...metadata.tags, ...tags } });
      } catch (error) {
        if (!(error instanceof ItemError)) throw error;
        problems.push(`${file.path}: ${error.message}`);
      }
    };
    if (/\.(vtt|srt)$/i.test(file.path)) {
      // A caption file without a language is of an undetermined one (BCP 47).
      const language = /^(.+)\.\w+$/.exec(rest)?.[1] ?? "und";
      captions.push({ language, label: "", read: () => file.read(MAX_CAPTION_BYTES) });
    } else if (/\.(ttml|dfxp|xml)$/i.test(file.path)) {
      try {
        const caption = await ttmlCaption(file, rest);
        if (caption) captions.push(caption);
      } catch (error) {
        if (!(error instanceof ItemError)) throw error;
        problems.push(`${file.path}: ${error.message}`);
      }
    } else if (/^(info\.)?json$/i.test(rest)) await read(metadataOfJson);
    else if (/^nfo$/i.test(rest)) await read(metadataOfNfo);
    else if (/^(jpe?g|png|webp)$/i.test(rest)) image ??= file;
  }
  const thumbnail = image;
  return plainItem({
    title: name.slice(0, name.lastIndexOf(".")) || name,
    createdAt: video.modifiedAt,
    ...metadata,
    filename: name,
    media,
    captions,
    problems,
    thumbnail: thumbnail && (() => thumbnail.read(MAX_IMAGE_BYTES)),
    oldPaths: [{ path: `/${video.path}`, to: "watch" }],
  });
}

/** A root element begins within the first characters of a document, after a few comments. */
const ROOT_CHARACTERS = 20_000;

/** A TTML file: its language is in its name, else in the document. Null for XML of another kind. Throws ItemError. */
async function ttmlCaption(file: TreeFile, rest: string): Promise<Caption | null> {
  const content = await file.read(MAX_CAPTION_BYTES);
  const head = Buffer.from(content.subarray(0, ROOT_CHARACTERS)).toString("utf8");
  if (/\.xml$/i.test(file.path) && !/<(?:[\w.-]{1,50}:)?tt[\s>]/.test(head)) return null;
  const language = /^(.+)\.\w+$/.exec(rest)?.[1] ?? languageOfTtml(head.replace(/^\ufeff/, "")) ?? "und";
  return { language, label: "", read: async () => content };
}
