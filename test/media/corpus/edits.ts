import { box, parts, rebuilt, u32 } from "#test/support/media/boxes.ts";
import { aac, both, edited, from, SECONDS, type Source, words, x264 } from "./source.ts";

/** Edit lists whose empty edits are between others: what QuickTime and editors write where a recording was paused. */

const GAP = 2;

/** What is shown: so many seconds of the movie, from which second of the media; null: nothing. */
type Edit = readonly [seconds: number, from: number | null];
type Edits = { video?: readonly Edit[]; audio?: readonly Edit[]; isWide?: boolean };

const isIn = (at: number, data: Buffer) => at + 8 <= data.length;

/** A file with other edit lists. Times of the media count from the first edit that it has. */
export const withEditLists = (file: Buffer, edits: Edits): Buffer =>
  rebuilt(file, ["moov"], (moov) => {
    const movieScale = (parts(moov).get("mvhd") as Buffer).readUInt32BE(20);
    const out: Buffer[] = [];
    for (let at = 0; isIn(at, moov); ) {
      const size = Math.max(8, moov.readUInt32BE(at));
      const type = moov.toString("latin1", at + 4, at + 8);
      const inner = moov.subarray(at + 8, at + size);
      out.push(type === "trak" ? box("trak", track(inner, movieScale, edits)) : moov.subarray(at, at + size));
      at += size;
    }
    return Buffer.concat(out);
  });

function track(body: Buffer, movieScale: number, edits: Edits): Buffer {
  const mdia = parts((parts(body).get("mdia") as Buffer).subarray(8));
  const handler = (mdia.get("hdlr") as Buffer).toString("latin1", 16, 20);
  const list = handler === "vide" ? edits.video : handler === "soun" ? edits.audio : undefined;
  if (!list) return body;
  const scale = (mdia.get("mdhd") as Buffer).readUInt32BE(20);
  const former = parts(body).get("edts");
  // Header of `edts`, header of `elst`, version, count, duration of the first edit: then its time.
  const first = former && former.readInt32BE(8 + 16 + 4) > 0 ? former.readInt32BE(8 + 16 + 4) : 0;
  const entries = list.map(([seconds, since]) => {
    const duration = Math.round(seconds * movieScale);
    const time = since === null ? -1 : first + Math.round(since * scale);
    if (!edits.isWide) return u32(duration, time, 0x10000);
    const wide = Buffer.alloc(20);
    wide.writeBigUInt64BE(BigInt(duration), 0);
    wide.writeBigInt64BE(BigInt(time), 8);
    wide.writeUInt32BE(0x10000, 16);
    return wide;
  });
  const edts = box("edts", box("elst", u32(edits.isWide ? 0x1000000 : 0, entries.length), ...entries));
  return Buffer.concat(
    [...parts(body)].flatMap(([type, bytes]) => (type === "edts" ? [] : type === "mdia" ? [edts, bytes] : [bytes])),
  );
}

const reordered = words("-c:v libx264 -preset veryfast -bf 3 -g 50 -pix_fmt yuv420p");
const PCM = words("-c:a pcm_s16le");
const paused: Edit[] = [
  [2, 0],
  [GAP, null],
  [2, 2],
];
// Edits of audio end with a packet, so that it must not contain the next beep.
const twice: Edit[] = [
  [1, null],
  [0.96, 0],
  [1.04, null],
  [0.96, 1],
  [1.04, null],
  [1.96, 2],
];
const SHOWN = [0, 1, 4, 5];

const row = (name: string, ending: string, codecs: string[], edits: Edits, more: Partial<Source> = {}): Source => ({
  name,
  family: "Empty edits",
  ending,
  size: "160x90",
  rate: 25,
  within: 0.1,
  seconds: SECONDS + GAP,
  flashes: SHOWN,
  beeps: SHOWN,
  from: edited([...both(), ...codecs], (data) => withEditLists(data, edits)),
  ...more,
});

export const edits: Source[] = [
  row("a pause in H.264 and PCM", "mov", [...x264, ...PCM], { video: paused, audio: paused }),
  row("a pause in H.264 out of order and AAC", "mp4", [...reordered, ...aac], { video: paused, audio: paused }),
  row("a pause in a list of 64 bits", "mp4", [...x264, ...aac], { video: paused, audio: paused, isWide: true }),
  row("a pause in ProRes and PCM", "mov", [...words("-c:v prores_ks -profile:v 0"), ...PCM], {
    video: paused,
    audio: paused,
  }),
  row(
    "a late start and two pauses",
    "mp4",
    [...reordered, ...aac],
    { video: twice, audio: twice },
    {
      // Times count from the first track that begins.
      seconds: 5.96,
      flashes: [0, 2, 4, 5],
      beeps: [0, 2, 4, 5],
    },
  ),
  row("a pause in the video alone", "mp4", [...reordered, ...aac], { video: paused }, { beeps: from(0, SECONDS) }),
  row("a pause in the audio alone", "mp4", [...reordered, ...aac], { audio: paused }, { flashes: from(0, SECONDS) }),
  row("what was shown before, after a pause", "mp4", [...reordered, ...aac], {
    video: [...paused.slice(0, 2), [1.9, 0]],
    audio: [...paused.slice(0, 2), [1.9, 0]],
  }),
  row(
    "a pause at the end",
    "mp4",
    [...x264, ...aac],
    {
      video: [
        [4, 0],
        [GAP, null],
      ],
      audio: [
        [4, 0],
        [GAP, null],
      ],
    },
    { seconds: SECONDS, flashes: from(0, SECONDS), beeps: from(0, SECONDS) },
  ),
];
