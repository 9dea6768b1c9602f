import { type AudioFormat, audioCodecs, type TrackConfig, type VideoFormat, videoCodecs } from "#lib/codecs";
import { box, fourCharacters, fullBox, long, shorts, words } from "./write-boxes.ts";

/** Each rendition is a file of one track. */
export const TRACK_ID = 1;

export type InitOptions = {
  timescale: number;
  /** Media time at which the presentation begins (8.6.6), in the timescale. */
  delay: number;
};

type Video = { kind: "video"; config: Extract<TrackConfig, { kind: "video" }>; format: VideoFormat };
type Audio = { kind: "audio"; config: Extract<TrackConfig, { kind: "audio" }>; format: AudioFormat };

const MATRIX = words(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000);

/** A CMAF header (ISO/IEC 23000-19, 7.3): `ftyp` and `moov` of a track without samples. */
export function writeInit(track: Video | Audio, { timescale, delay }: InitOptions): Buffer {
  const isVideo = track.kind === "video";
  const size = isVideo ? [track.format.width * 0x10000, track.format.height * 0x10000] : [0, 0];
  const tkhd = [
    ...[words(0, 0, TRACK_ID, 0, 0, 0, 0), shorts(0, 0, isVideo ? 0 : 0x100, 0)],
    ...[MATRIX, words(...size)],
  ];
  const handler = Buffer.concat([words(0), fourCharacters(isVideo ? "vide" : "soun"), words(0, 0, 0), Buffer.of(0)]);
  const media = isVideo ? fullBox("vmhd", 0, 1, shorts(0, 0, 0, 0)) : fullBox("smhd", 0, 0, shorts(0, 0));
  const samples = box(
    "stbl",
    fullBox("stsd", 0, 0, words(1), isVideo ? videoEntry(track) : audioEntry(track)),
    fullBox("stts", 0, 0, words(0)),
    fullBox("stsc", 0, 0, words(0)),
    fullBox("stsz", 0, 0, words(0, 0)),
    fullBox("stco", 0, 0, words(0)),
  );
  const mdia = box(
    "mdia",
    // Language "und".
    fullBox("mdhd", 0, 0, words(0, 0, timescale, 0), shorts(0x55c4, 0)),
    fullBox("hdlr", 0, 0, handler),
    box("minf", media, box("dinf", fullBox("dref", 0, 0, words(1), fullBox("url ", 0, 1))), samples),
  );
  // A duration of 0 is that of all fragments (8.6.6.1).
  const edit = delay > 0 ? [box("edts", fullBox("elst", 0, 0, words(1, 0, delay, 0x10000)))] : [];
  return Buffer.concat([
    box("ftyp", fourCharacters("cmfc"), words(0), fourCharacters("cmfc", "iso6", "mp41")),
    box(
      "moov",
      fullBox(
        "mvhd",
        0,
        0,
        words(0, 0, 1000, 0, 0x10000),
        shorts(0x100, 0),
        words(0, 0),
        MATRIX,
        words(0, 0, 0, 0, 0, 0, 2),
      ),
      box("trak", fullBox("tkhd", 0, 3, ...tkhd), ...edit, mdia),
      box("mvex", fullBox("trex", 0, 0, words(TRACK_ID, 1, 0, 0, 0))),
    ),
  ]);
}

/** 12.1.3 */
function videoEntry({ config, format }: Video): Buffer {
  const { width, height, colors, aspect } = format;
  const codec = videoCodecs[config.codec];
  return box(
    codec.sampleEntries[0],
    ...[words(0), shorts(0, 1), words(0, 0, 0, 0), shorts(width, height), words(0x480000, 0x480000, 0)],
    // One frame in each sample, no name of a compressor, a depth of 24 bits.
    ...[shorts(1), Buffer.alloc(32), shorts(0x18, 0xffff)],
    box(codec.configurationBox, config.configuration),
    ...(colors
      ? [
          box(
            "colr",
            fourCharacters("nclx"),
            shorts(colors.primaries, colors.transfer, colors.matrix),
            Buffer.of(colors.isFullRange ? 0x80 : 0),
          ),
        ]
      : []),
    ...(aspect && aspect.horizontal !== aspect.vertical
      ? [box("pasp", words(aspect.horizontal, aspect.vertical))]
      : []),
  );
}

/** 12.2.3, and the descriptors of ISO/IEC 14496-14, 5.6. */
function audioEntry({ config, format }: Audio): Buffer {
  const descriptor = (tag: number, ...contents: Uint8Array[]) => {
    const content = Buffer.concat(contents);
    return Buffer.concat([Buffer.of(tag, content.length), content]);
  };
  const decoder = descriptor(
    4,
    // MPEG-4 audio, an audio stream; the size of the buffer and the bitrates are not known.
    Buffer.of(0x40, 0x15, 0, 0, 0),
    long(0),
    descriptor(5, config.configuration),
  );
  const rate = format.sampleRate < 0x10000 ? format.sampleRate * 0x10000 : 0;
  const codec = audioCodecs[config.codec];
  return box(
    codec.sampleEntries[0],
    ...[words(0), shorts(0, 1), words(0, 0), shorts(format.channels, 16), words(0, rate)],
    fullBox(codec.configurationBox, 0, 0, descriptor(3, Buffer.of(0, 0, 0), decoder, descriptor(6, Buffer.of(2)))),
  );
}
