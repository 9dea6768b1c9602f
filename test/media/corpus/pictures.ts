import { aac, both, SECONDS, type Source, words } from "./source.ts";

/** Sizes, shapes of pixels, depths and colors. */

const common = { seconds: SECONDS, rate: 25 };

const formats = (
  [
    ["yuv420p10le", "mp4", "-c:v libx264 -preset ultrafast"],
    ["yuv422p", "mp4", "-c:v libx264 -preset ultrafast"],
    ["yuv422p10le", "mov", "-c:v libx264 -preset ultrafast"],
    ["yuv444p", "mkv", "-c:v libx264 -preset ultrafast"],
    ["yuv444p10le", "mkv", "-c:v libx264 -preset ultrafast"],
    ["gray", "mkv", "-c:v libx264 -preset ultrafast"],
    ["yuvj420p", "mp4", "-c:v libx264 -preset ultrafast"],
    ["yuv420p10le", "mkv", "-c:v libx265 -preset ultrafast -x265-params log-level=error"],
    ["yuv422p10le", "mp4", "-c:v libx265 -preset ultrafast -x265-params log-level=error"],
    ["yuv444p12le", "mkv", "-c:v libx265 -preset ultrafast -x265-params log-level=error"],
    ["yuv420p10le", "webm", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8"],
    ["yuv444p", "webm", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8"],
    ["yuva420p", "webm", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8"],
    ["yuva420p", "webm", "-c:v libvpx -deadline realtime -cpu-used 8 -auto-alt-ref 0"],
    ["gbrp", "mkv", "-c:v libx264rgb -preset ultrafast"],
    ["bgr0", "avi", "-c:v huffyuv"],
    ["rgba", "mov", "-c:v png"],
    ["argb", "mov", "-c:v qtrle"],
    ["gbrp10le", "mkv", "-c:v ffv1"],
    ["gray16le", "mkv", "-c:v ffv1"],
    ["yuv410p", "mkv", "-c:v ffv1"],
    ["yuv411p", "avi", "-c:v ffvhuff"],
    ["yuv440p", "mkv", "-c:v ffv1"],
    ["yuvj422p", "avi", "-c:v mjpeg"],
    ["yuvj444p", "mov", "-c:v mjpeg"],
    ["yuyv422", "avi", "-c:v rawvideo"],
    ["uyvy422", "mov", "-c:v rawvideo"],
    ["bgr24", "avi", "-c:v rawvideo"],
    ["pal8", "mov", "-c:v qtrle"],
  ] as [string, string, string][]
).map(
  ([format, ending, video]): Source => ({
    ...common,
    name: `${format} in ${video.split(" ")[1]}`,
    family: "Pixel formats",
    ending,
    size: "160x90",
    from: [
      ...[...both(), ...words(video), "-pix_fmt", format === "pal8" ? "rgb24" : format],
      ...(ending === "webm" ? words("-c:a libopus") : ending === "avi" ? words("-c:a pcm_s16le") : aac),
    ],
  }),
);

const sizes = (
  [
    ["161x91", "mkv", "160x90"],
    ["161x91 in 4:4:4", "mkv", "160x90"],
    ["163x93 in 4:1:0", "mkv", "162x92"],
    ["90x160", "mp4", "90x160"],
    ["16x16", "mp4", "16x16"],
    ["640x36", "mp4", "640x36"],
    ["36x640", "mkv", "36x640"],
    ["1x1 in 4:4:4", "mkv", "16x16"],
    ["320x1 in 4:4:4", "mkv", "320x16"],
    ["1280x720", "mp4", "1280x720"],
    ["720x1280", "mp4", "720x1280"],
    ["1080x1080", "mp4", "1080x1080"],
  ] as [string, string, string][]
).map(([name, ending, size]): Source => {
  const [given = ""] = name.split(" ");
  const format = name.endsWith("4:4:4") ? "yuv444p" : name.endsWith("4:1:0") ? "yuv410p" : "yuv420p";
  // The generator makes even sizes only.
  const more = `scale=${given.replace("x", ":")},setsar=1,format=${format}`;
  return {
    ...common,
    name,
    family: "Sizes and shapes",
    ending,
    size,
    flashes: [],
    from: [
      ...both({ more }),
      ...(ending === "mkv" ? words("-c:v ffv1") : words("-c:v libx264 -preset ultrafast -pix_fmt yuv420p")),
      ...aac,
    ],
  };
});

const shapes = (
  [
    ["720x576", "16/15", "768x576"],
    ["720x576", "64/45", "1024x576"],
    ["720x480", "8/9", "720x540"],
    ["720x480", "32/27", "852x480"],
    ["352x288", "12/11", "384x288"],
    ["160x90", "100/1", "160x90"],
  ] as [string, string, string][]
).flatMap(([given, aspect, size]) =>
  // x264 writes such pixels into a transport stream that nothing decodes.
  ["mp4", "mkv", ...(aspect === "100/1" ? [] : ["ts"])].map(
    (ending): Source => ({
      ...common,
      name: `${given} with pixels of ${aspect}`,
      family: "Sizes and shapes",
      ending,
      size,
      from: [
        ...[...both({ size: given }), "-vf", `setsar=${aspect}`],
        ...[...words("-c:v libx264 -preset ultrafast -pix_fmt yuv420p"), ...aac],
      ],
    }),
  ),
);

const colors = (
  [
    ["bt709", "-colorspace bt709 -color_primaries bt709 -color_trc bt709"],
    ["bt601", "-colorspace smpte170m -color_primaries smpte170m -color_trc smpte170m"],
    ["pal", "-colorspace bt470bg -color_primaries bt470bg -color_trc gamma28"],
    ["bt2020", "-colorspace bt2020nc -color_primaries bt2020 -color_trc bt709"],
    ["pq", "-colorspace bt2020nc -color_primaries bt2020 -color_trc smpte2084 -pix_fmt yuv420p10le"],
    ["hlg", "-colorspace bt2020nc -color_primaries bt2020 -color_trc arib-std-b67 -pix_fmt yuv420p10le"],
    ["display-p3", "-colorspace bt709 -color_primaries smpte432 -color_trc iec61966-2-1"],
    ["matrix alone", "-colorspace smpte170m"],
    ["odd", "-colorspace fcc -color_primaries film -color_trc log316"],
  ] as [string, string][]
).flatMap(([name, args]) =>
  ["mp4", "mkv"].map(
    (ending): Source => ({
      ...common,
      name,
      family: "Colors",
      ending,
      size: "160x90",
      from: [
        ...both(),
        ...words(`-c:v libx264 -preset ultrafast ${args.includes("pix_fmt") ? "" : "-pix_fmt yuv420p"} ${args}`),
        ...aac,
      ],
    }),
  ),
);

export const pictures: Source[] = [...formats, ...sizes, ...shapes, ...colors];
