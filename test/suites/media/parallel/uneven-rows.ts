import { aac, h264, mpeg2, type Row } from "#test/support/media/matrix-sources.ts";

type MadeRow = Row & { from: string[] };

const picture = (size = "320x180") => ["-f", "lavfi", "-i", `testsrc2=s=${size}:r=25:d=22`];
const sound = (seconds: number) => ["-f", "lavfi", "-i", `sine=r=48000:d=${seconds}`];
const late = ["-itsoffset", "0.73"];
/** It ends later, too: the last frame is held in the last part. */
const lateAudio = ["-itsoffset", "0.43"];

/** Tracks that begin at different times, in containers whose clock ffmpeg starts with the first track that it uses. */
export const unevenRows: MadeRow[] = [
  { name: "late video", file: "uv.ts", from: [...late, ...picture("640x360"), ...sound(22.7), ...h264, ...aac] },
  { name: "late audio", file: "ua.ts", from: [...picture(), ...lateAudio, ...sound(21.3), ...h264, ...aac] },
  { name: "late audio", file: "ua.mpg", from: [...picture(), ...lateAudio, ...sound(21.3), ...mpeg2, "-c:a", "mp2"] },
  { name: "late audio", file: "ua.mp4", from: [...picture(), ...lateAudio, ...sound(21.3), ...h264, ...aac] },
  { name: "late audio", file: "ua.mkv", from: [...picture(), ...lateAudio, ...sound(21.3), ...h264, ...aac] },
  { name: "audio that ends early", file: "ue.ts", from: [...picture(), ...sound(9), ...h264, ...aac] },
  {
    name: "late audio in two tracks",
    file: "ut.ts",
    from: [
      ...[...picture(), ...lateAudio, ...sound(21.3), "-itsoffset", "0.31", ...sound(21.7), ...h264, ...aac],
      ...["-map", "0:v", "-map", "1:a", "-map", "2:a"],
    ],
  },
];

const stated = (matrix: string, primaries: string, transfer: string, range = "tv") => [
  ...["-colorspace", matrix, "-color_primaries", primaries, "-color_trc", transfer, "-color_range", range],
];
const x264 = ["-c:v", "libx264", "-preset", "ultrafast"];

/** Colors that are converted. */
export const colorRows: MadeRow[] = [
  {
    name: "BT.2020",
    file: "c2020.mp4",
    from: [...picture(), ...x264, "-pix_fmt", "yuv420p10le", ...stated("bt2020nc", "bt2020", "bt2020-10")],
  },
  {
    name: "P3",
    file: "cp3.mp4",
    from: [...picture(), ...x264, "-pix_fmt", "yuv420p", ...stated("bt709", "smpte432", "bt709")],
  },
  {
    name: "BT.601 in full range",
    file: "cfull.mp4",
    from: [...picture(), ...x264, "-pix_fmt", "yuvj420p", ...stated("smpte170m", "smpte170m", "smpte170m", "pc")],
  },
  { name: "RGB", file: "crgb.mov", from: [...picture(), "-c:v", "png", "-pix_fmt", "rgb24"] },
];
