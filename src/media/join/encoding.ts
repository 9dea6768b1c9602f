import type { InitSegment } from "#lib/isobmff";
import { comparableInit } from "./comparable-init.ts";

/** What must be equal in all assets that are joined. */
export type EncodingOfPart = {
  assetId: number;
  frameRate: number | null;
  renditions: readonly { name: string; bytes: Buffer; init: InitSegment }[];
};

const kindOf = ({ width }: InitSegment) => (width > 0 ? "video" : "audio");

/** The name of a rendition: the directory of its playlist, which is also the one of its segments. */
export function renditionName(playlistPath: string): string | null {
  return /^([A-Za-z0-9_-]{1,64})\/[^/]+$/.exec(playlistPath)?.[1] ?? null;
}

/** The first difference between two parts, as a sentence; null when their segments can follow each other. */
export function differenceOf(first: EncodingOfPart, other: EncodingOfPart): string | null {
  const a = first.renditions;
  const b = other.renditions;
  const differ = (what: string, one: unknown, two: unknown) =>
    `Asset ${first.assetId} has ${what} ${one}, asset ${other.assetId} has ${two}.`;
  for (const kind of ["video", "audio"] as const) {
    const [one, two] = [a, b].map((all) => namesOf(all, kind)) as [string, string];
    const what = kind === "video" ? "the renditions" : "the audio tracks";
    if (one !== two) return differ(what, one || "none", two || "none");
  }
  if (first.frameRate !== other.frameRate) return differ("the frame rate", first.frameRate, other.frameRate);
  for (const one of a) {
    const two = b.find(({ name }) => name === one.name) as Described;
    const [size, otherSize] = [one, two].map(({ init }) => `${init.width}x${init.height}`);
    if (size !== otherSize) return differ(`the size ${one.name}`, size, otherSize);
    if (one.init.codec !== two.init.codec) return differ(`in ${one.name} the codec`, one.init.codec, two.init.codec);
  }
  const unequal = a.find(({ name, bytes }) => {
    const two = b.find((each) => each.name === name) as Described;
    return !comparableInit(two.bytes).equals(comparableInit(bytes));
  });
  if (unequal)
    return `The init segments of ${unequal.name} of the assets ${first.assetId} and ${other.assetId} differ.`;
  return null;
}

type Described = EncodingOfPart["renditions"][number];

const namesOf = (all: readonly Described[], kind: "video" | "audio") =>
  all
    .filter(({ init }) => kindOf(init) === kind)
    .map(({ name }) => name)
    .toSorted()
    .join(", ");
