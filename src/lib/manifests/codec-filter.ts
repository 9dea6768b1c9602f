import { type MasterEdit, type MasterLine, withoutLines } from "./master-edits.ts";
import type { MpdEdit } from "./mpd-edits.ts";

/** `hidden` are sample entries: the first elements of codec strings (RFC 6381, 3.3). */
const isHidden = (codecs: string | undefined, hidden: readonly string[]): boolean =>
  (codecs ?? "").split(",").some((codec) => hidden.includes(codec.trim().split(".", 1)[0] ?? ""));

/** Leaves out the variants that need a hidden codec. */
export const withoutCodecs =
  (hidden: readonly string[]): MasterEdit =>
  (lines) =>
    withoutLines(lines, (line) => isHidden(line.attribute("CODECS"), hidden));

/** Keeps only the variants whose media playlist is `uri`, and no I-frame variants. */
export const onlyVariant =
  (uri: string): MasterEdit =>
  (lines) => {
    const kept: MasterLine[] = [];
    let variant: MasterLine | null = null;
    for (const line of lines) {
      if (line.kind === "frames") continue;
      if (line.kind === "variant") variant = line;
      else if (line.kind !== "uri") kept.push(line);
      else {
        if (variant !== null && line.text.trim() === uri) kept.push(variant, line);
        variant = null;
      }
    }
    return kept;
  };

/** Leaves out the Representations of a hidden codec, and the sets that have no others. */
export const mpdWithoutCodecs =
  (hidden: readonly string[]): MpdEdit =>
  (draft) => {
    // A manifest may have been stored before manifests were checked. It keeps all of its sets.
    if (!draft.isWellFormed()) return;
    for (const set of draft.sets()) {
      const gone = set.representations.filter(({ codecs }) => isHidden(codecs, hidden));
      if (gone.length > 0 && gone.length === set.representations.length) draft.remove(set);
      else if (gone.length > 0) draft.removeFrom(set, gone);
    }
  };
