/** A library of videos, as every stand-in for a provider has it. */
export type StandInVideo = {
  /** As UUIDs are, which every provider's ids may look like. */
  id: string;
  title: string;
  isPublic: boolean;
  content: Buffer;
  captions: string[];
  /** `expired`: the first URL of its file is not valid any more. `missing`: there is no file. `slow`: see `StandIn.hold`. */
  file: "there" | "expired" | "missing" | "slow";
};

export const SECONDS = 2;
export const CREATED = "2020-01-02T03:04:05.000Z";
export const CAPTION = "WEBVTT\n\n00:00.000 --> 00:01.000\nHi\n";

const id = (n: number) => `${String(n).padStart(8, "0")}-1111-4222-8333-444444444444`;
const video = (n: number, title: string, file: StandInVideo["file"] = "there"): StandInVideo => ({
  id: id(n),
  title,
  file,
  isPublic: n !== 2,
  captions: n === 1 ? ["en", "pt-BR"] : [],
  content: Buffer.alloc(40_000 + n, `content of ${n}`),
});

/** As many videos as `count`, with long titles and small content. */
export const manyVideos = (count: number): StandInVideo[] =>
  Array.from({ length: count }, (_, index) => ({
    ...video(index + 3, `Film ${index + 1} ${"about it ".repeat(20)}`),
    content: Buffer.alloc(64, `${index} `),
  }));

export const LIBRARY: readonly StandInVideo[] = [
  video(1, "First"),
  video(2, "=SUM(1) “odd” \u202e/../name, with\nlines", "expired"),
  video(3, "Gone", "missing"),
  video(4, "Fourth"),
  video(5, "Last", "slow"),
];
/** The items of a page of a list. */
export const PAGE = 2;
