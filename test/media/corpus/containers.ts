import { beeping, both, picture, SECONDS, type Source, words, x264 } from "./source.ts";

/** Containers with the codecs that people put into them. */

const VIDEO: Record<string, string> = {
  h264: "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 25",
  hevc: "-c:v libx265 -preset ultrafast -x265-params log-level=error",
  av1: "-c:v libsvtav1 -preset 12",
  vp8: "-c:v libvpx -deadline realtime -cpu-used 8",
  vp9: "-c:v libvpx-vp9 -deadline realtime -cpu-used 8",
  mpeg1: "-c:v mpeg1video -q:v 3",
  mpeg2: "-c:v mpeg2video -q:v 3",
  mpeg4: "-c:v mpeg4 -q:v 3",
  xvid: "-c:v mpeg4 -q:v 3 -vtag XVID -bf 2",
  divx3: "-c:v msmpeg4v3 -q:v 3",
  msmpeg4v2: "-c:v msmpeg4v2 -q:v 3",
  wmv1: "-c:v wmv1 -q:v 3",
  wmv2: "-c:v wmv2 -q:v 3",
  flv1: "-c:v flv -q:v 3",
  h263: "-c:v h263 -q:v 3 -s 176x144",
  theora: "-c:v libtheora -q:v 7",
  mjpeg: "-c:v mjpeg -q:v 3",
  prores: "-c:v prores_ks -profile:v 2",
  prores4444: "-c:v prores_ks -profile:v 4 -pix_fmt yuva444p10le",
  dnxhr: "-c:v dnxhd -profile:v dnxhr_sq -s 256x144 -pix_fmt yuv422p",
  cineform: "-c:v cfhd -s 160x96 -pix_fmt yuv422p10",
  jpeg2000: "-c:v jpeg2000 -pix_fmt yuv420p",
  ffv1: "-c:v ffv1",
  huffyuv: "-c:v huffyuv",
  ffvhuff: "-c:v ffvhuff",
  utvideo: "-c:v utvideo",
  qtrle: "-c:v qtrle",
  png: "-c:v png",
  cinepak: "-c:v cinepak -s 160x88",
  svq1: "-c:v svq1",
  raw: "-c:v rawvideo -pix_fmt yuv420p",
  rawRgb: "-c:v rawvideo -pix_fmt rgb24",
  v210: "-c:v v210 -s 192x108 -pix_fmt yuv422p10",
};
/** Sizes that an encoder does not have in general. */
const SIZES: Record<string, string> = {
  h263: "176x144",
  dnxhr: "256x144",
  cineform: "160x96",
  cinepak: "160x88",
  v210: "192x108",
};

const AUDIO: Record<string, string> = {
  aac: "-c:a aac",
  heaac: "-c:a aac -b:a 48k",
  mp3: "-c:a libmp3lame",
  mp2: "-c:a mp2",
  ac3: "-c:a ac3",
  eac3: "-c:a eac3",
  dts: "-c:a dca -strict -2",
  truehd: "-c:a truehd -strict -2",
  opus: "-c:a libopus",
  vorbis: "-c:a libvorbis",
  speex: "-c:a libspeex -ar 16000 -ac 1",
  flac: "-c:a flac -strict -2",
  alac: "-c:a alac",
  pcm: "-c:a pcm_s16le",
  pcm24: "-c:a pcm_s24le",
  pcmBe: "-c:a pcm_s16be",
  pcm24Be: "-c:a pcm_s24be",
  pcmFloat: "-c:a pcm_f32le",
  pcmFloatBe: "-c:a pcm_f32be",
  bluray: "-c:a pcm_bluray",
  dvd: "-c:a pcm_dvd",
  ulaw: "-c:a pcm_mulaw -ar 8000 -ac 1",
  alaw: "-c:a pcm_alaw -ar 8000 -ac 1",
  adpcm: "-c:a adpcm_ima_wav",
  adpcmMs: "-c:a adpcm_ms",
  adpcmQt: "-c:a adpcm_ima_qt",
  g726: "-c:a g726 -ar 8000 -ac 1",
  nellymoser: "-c:a nellymoser -ar 22050 -ac 1",
  wmav1: "-c:a wmav1",
  wmav2: "-c:a wmav2",
  s302m: "-c:a s302m -strict -2",
};

const PAIRS: Record<string, string> = {
  mp4: `h264+aac h264+mp3 h264+ac3 h264+eac3 h264+opus h264+flac h264+alac hevc+aac av1+aac av1+opus vp9+opus mpeg4+aac
    mpeg2+mp2 mjpeg+aac jpeg2000+aac`,
  mov: `h264+aac h264+pcm h264+alac hevc+aac prores+pcm24 prores4444+pcm mjpeg+pcm mjpeg+adpcmQt dnxhr+pcm cineform+pcm qtrle+pcmBe
    png+pcm jpeg2000+aac svq1+pcm rawRgb+pcm v210+pcm24 mpeg4+aac h264+ulaw`,
  mkv: `h264+aac h264+ac3 h264+eac3 h264+dts h264+truehd h264+mp3 h264+pcm hevc+opus av1+opus vp8+vorbis vp9+flac ffv1+flac
    mpeg2+mp2 mpeg4+mp3 theora+vorbis prores+pcm24 mjpeg+pcm utvideo+flac raw+pcm divx3+mp3 h264+alac`,
  webm: "vp8+vorbis vp8+opus vp9+opus vp9+vorbis av1+opus",
  avi: `xvid+mp3 divx3+mp3 msmpeg4v2+mp2 mjpeg+pcm mjpeg+adpcm h264+aac h264+ac3 h264+mp3 huffyuv+pcm ffvhuff+pcm utvideo+pcm
    ffv1+pcm cinepak+adpcmMs raw+pcm mpeg2+mp2 jpeg2000+pcm cineform+pcm mpeg4+alaw`,
  ts: "h264+aac h264+mp2 h264+ac3 h264+eac3 h264+mp3 h264+s302m h264+dts hevc+aac hevc+eac3 mpeg2+mp2 mpeg2+ac3 mpeg1+mp2 mpeg2+aac",
  m2ts: "h264+ac3 h264+bluray hevc+dts",
  mpg: "mpeg1+mp2 mpeg2+mp2 mpeg2+ac3",
  vob: "mpeg2+ac3 mpeg2+mp2 mpeg2+dvd mpeg2+dts",
  flv: "flv1+mp3 flv1+nellymoser flv1+speex h264+aac h264+mp3",
  asf: "wmv1+wmav1 wmv2+wmav2 divx3+mp3",
  wmv: "wmv2+wmav2 wmv1+wmav2",
  ogv: "theora+vorbis theora+flac theora+opus theora+speex",
  mxf: "mpeg2+pcm mpeg2+pcm24 dnxhr+pcm24 jpeg2000+pcm24 h264+pcm",
  "3gp": "h263+aac h264+aac mpeg4+aac",
  "3g2": "h264+aac",
  m4v: "h264+aac mpeg4+aac",
};

const splitOf = (pair: string) => pair.split("+") as [string, string];

const withVideo = Object.entries(PAIRS).flatMap(([ending, pairs]) =>
  words(pairs.replaceAll("\n", " ")).map((pair): Source => {
    const [video, audio] = splitOf(pair);
    const size = SIZES[video] ?? "160x90";
    return {
      name: `${video} and ${audio}`,
      family: `Codecs in .${ending}`,
      ending,
      size,
      rate: 25,
      seconds: SECONDS,
      from: [...both({ size }), ...words(`${VIDEO[video]} ${AUDIO[audio]}`)],
      // Their encoders delay what they encode, which these containers do not state.
      ...(/wma|nellymoser|speex|truehd/.test(audio) && { apart: 0.12 }),
      ...(ending === "vob" &&
        audio === "dvd" && { from: [...both({ size }), ...words(`${VIDEO[video]} ${AUDIO[audio]} -f vob`)] }),
      within: 0.25,
    };
  }),
);

const ALONE: Record<string, string> = {
  mp3: "mp3",
  m4a: "aac alac",
  m4b: "aac",
  aac: "aac",
  flac: "flac",
  ogg: "vorbis opus flac speex",
  oga: "vorbis",
  opus: "opus",
  wav: "pcm pcm24 pcmFloat ulaw alaw adpcm adpcmMs mp3 g726",
  mka: "aac flac opus ac3 pcm",
  weba: "opus",
  wma: "wmav2 wmav1",
  aiff: "pcmBe pcm24Be pcm ulaw alaw adpcmQt",
  caf: "pcm alac opus ulaw adpcmQt",
  au: "pcmBe ulaw pcmFloatBe",
  w64: "pcm pcm24 ac3",
  loas: "aac",
  mp4: "aac mp3",
  mov: "pcm aac",
  ts: "aac mp2",
  avi: "mp3 pcm",
  flv: "mp3 aac",
};
/** Muxers of endings that ffmpeg does not know. */
const MUXERS: Record<string, string[]> = { weba: ["-f", "webm"], m4b: ["-f", "ipod"], loas: ["-f", "latm"] };

const withoutVideo = Object.entries(ALONE).flatMap(([ending, codecs]) =>
  words(codecs).map(
    (codec): Source => ({
      name: `${codec} alone`,
      family: "Audio alone",
      ending,
      size: null,
      seconds: SECONDS,
      within: 0.25,
      from: [...beeping(), ...words(AUDIO[codec] as string), ...(MUXERS[ending] ?? [])],
      // Without a video nothing is to be in sync with the delay of an encoder that the file does not state.
      apart: 0.12,
    }),
  ),
);

const silent = (["mp4", "mkv", "webm", "avi", "ts", "mov"] as const).map(
  (ending): Source => ({
    name: "video alone",
    family: "Video alone",
    ending,
    size: "160x90",
    rate: 25,
    seconds: SECONDS,
    tracks: 0,
    from: [...picture(), ...(ending === "webm" ? words(VIDEO.vp8 as string) : x264)],
  }),
);

const animations = (
  [
    ["gif", []],
    ["gif", ["-loop", "-1"]],
    ["apng", ["-f", "apng"]],
    ["png", ["-f", "apng", "-plays", "0"]],
  ] as [string, string[]][]
).map(
  ([ending, args]): Source => ({
    name: `an animation ${args.join(" ")}`.trim(),
    family: "Animations and DV",
    ending,
    size: "160x90",
    rate: 25,
    seconds: SECONDS,
    tracks: 0,
    from: [...picture(), ...args],
  }),
);

const dv = (
  [
    ["pal-dv", "720x576", 25, "768x576"],
    ["ntsc-dv", "720x480", "30000/1001", "720x480"],
  ] as [string, string, number | string, string][]
).flatMap(([target, size, rate]) =>
  ["dv", "avi", "mov"].map(
    (ending): Source => ({
      name: target,
      family: "Animations and DV",
      ending,
      seconds: SECONDS,
      within: 0.25,
      from: [
        ...both({ size, rate }),
        ...(ending === "dv" ? ["-target", target] : words("-c:v dvvideo -c:a pcm_s16le")),
        ...words("-pix_fmt").concat(target === "pal-dv" ? "yuv420p" : "yuv411p"),
      ],
    }),
  ),
);

export const containers: Source[] = [...withVideo, ...withoutVideo, ...silent, ...animations, ...dv];
