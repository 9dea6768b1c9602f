import { box, parts, rebuilt, u32 } from "#test/support/media/boxes.ts";
import { ffmpeg } from "#test/support/media/sources.ts";
import { aac, both, edited, everywhere, opus, SECONDS, type Source, vp8, words, x264 } from "./source.ts";

/** Pauses, edit lists and fragments, whose index is unusual or wrong. */

const common = { seconds: SECONDS, size: "160x90", rate: 25, within: 0.25 };

const codecs = (ending: string): string[] => (ending === "webm" ? [...vp8, ...opus] : [...x264, ...aac]);

const GAP = 2;
/** Both tracks pause: packets from 2 s on are later. */
const gaps = ["mp4", "mov", "mkv", "webm", "ts", "flv"].map(
  (ending): Source => ({
    ...common,
    name: "a pause in both tracks",
    family: "Starts and cuts",
    ending,
    seconds: SECONDS + GAP,
    flashes: [0, 1, 4, 5],
    beeps: [0, 1, 4, 5],
    from: async (path) => {
      const original = `${path}.original.${ending === "webm" ? "webm" : "mkv"}`;
      await ffmpeg(...both(), ...codecs(ending), "-bf", "0", original);
      const later = `setts=ts=TS+gte(TS*TB\\,1.99)*${GAP}/TB`;
      await ffmpeg("-i", original, "-c", "copy", "-bsf:v", later, "-bsf:a", later, `${original}.later.mkv`);
      await ffmpeg("-i", `${original}.later.mkv`, "-c", "copy", path);
    },
  }),
);

/** Each entry: what is shown, in milliseconds of the movie and in units of the track (-1: nothing). */
const withEdits = (moov: Buffer, list: readonly [milliseconds: number, mediaSeconds: number | null][]) => {
  const out: Buffer[] = [];
  for (let at = 0; at + 8 <= moov.length; ) {
    const size = Math.max(8, moov.readUInt32BE(at));
    const type = moov.toString("latin1", at + 4, at + 8);
    const inner = moov.subarray(at + 8, at + size);
    out.push(type === "trak" ? box("trak", track(inner)) : moov.subarray(at, at + size));
    at += size;
  }
  return Buffer.concat(out);
  function track(body: Buffer): Buffer {
    const children = [...parts(body)];
    const mdia = parts((parts(body).get("mdia") as Buffer).subarray(8));
    const timescale = (mdia.get("mdhd") as Buffer).readUInt32BE(20);
    const entries = list.map(([milliseconds, seconds]) =>
      u32(milliseconds, seconds === null ? 0xffffffff : Math.round(seconds * timescale), 0x10000),
    );
    const edts = box("edts", box("elst", u32(0, entries.length), ...entries));
    return Buffer.concat(
      children.flatMap(([type, bytes]) => (type === "edts" ? [] : type === "mdia" ? [edts, bytes] : [bytes])),
    );
  }
};
const PCM = words("-c:a pcm_s16le");
const edits = (
  [
    [
      "two edits that leave out the middle",
      2,
      [
        [1000, 0],
        [1000, 3],
      ],
      [0, 1],
    ],
  ] as [string, number, [number, number | null][], number[]][]
).map(
  ([name, seconds, list, all]): Source => ({
    ...common,
    name,
    family: "Starts and cuts",
    ending: "mov",
    seconds,
    beeps: all,
    flashes: all,
    from: edited([...both(), ...x264, "-bf", "0", ...PCM], (data) =>
      rebuilt(data, ["moov"], (moov) => withEdits(moov, list)),
    ),
  }),
);

const FRAGMENTS = ["-movflags", "frag_keyframe+empty_moov+default_base_moof"];
const DASH = ["-movflags", "dash+global_sidx"];
const later = (body: Buffer, seconds: number, scale: number) =>
  body.writeBigUInt64BE(body.readBigUInt64BE(4) + BigInt(seconds * scale), 4);
const fragmented: Source[] = (
  [
    [
      "fragments whose times begin at an hour",
      FRAGMENTS,
      (data) => everywhere(data, "tfdt", (body, at) => later(body, 3600, at % 2 ? 48_000 : 12_800)),
    ],
    [
      "fragments with a wrong duration",
      [...FRAGMENTS, "-movflags", "+dash"],
      (data) => everywhere(data, "mvhd", (body) => body.writeUInt32BE(3_600_000, 16)),
    ],
    [
      "a segment index with a wrong duration",
      DASH,
      (data) => everywhere(data, "sidx", (body) => body.writeUInt32BE(body.readUInt32BE(36) * 100, 36)),
    ],
    ["the last fragment is missing", FRAGMENTS, (data) => data.subarray(0, data.lastIndexOf("moof") - 4)],
  ] as [string, string[], (data: Buffer) => Buffer][]
).map(
  ([name, flags, edit]): Source => ({
    ...common,
    name,
    family: "Lengths left out",
    ending: "mp4",
    ...(name.includes("missing") && { seconds: 3, beeps: [] }),
    from: edited([...both(), ...x264, "-bf", "0", ...aac, ...flags], edit),
  }),
);

export const indexes: Source[] = [...gaps, ...edits, ...fragmented];
