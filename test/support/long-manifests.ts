import { mediaPlaylist } from "#src/lib/manifests/m3u8.ts";
import { staticMpd } from "#src/lib/manifests/mpd.ts";

const RENDITIONS = ["1080p", "720p", "480p", "360p", "240p"];
const SEGMENT = 4;
/** Thumbnails of a storyboard, at most. */
const THUMBNAILS = 100;

/** The manifests of an asset of this many seconds with five renditions, as `vodbox` writes them, by path. */
export function longManifests(seconds: number): Record<string, string> {
  const count = seconds / SEGMENT;
  const names = Array.from({ length: count }, (_, index) => `${String(index + 1).padStart(5, "0")}.m4s`);
  const head = { version: 7, initUri: "init.mp4", targetDurationSeconds: SEGMENT };
  const playlist = (isIFramesOnly = false) =>
    mediaPlaylist({
      ...head,
      isIFramesOnly,
      segments: names.map((uri, index) => ({
        uri,
        durationSeconds: SEGMENT,
        ...(isIFramesOnly && { range: { offset: 800 + index, bytes: 30_000 + index } }),
      })),
    });
  const segments = (timescale: number) =>
    names.map((_, index) => ({ start: index * SEGMENT * timescale, duration: SEGMENT * timescale }));
  const mpd = staticMpd({
    profile: "p",
    durationSeconds: seconds,
    maxSegmentSeconds: SEGMENT,
    initTemplate: "$RepresentationID$/init.mp4",
    mediaTemplate: "$RepresentationID$/$Number%05d$.m4s",
    sets: [
      {
        kind: "video",
        language: null,
        isMain: true,
        representations: RENDITIONS.map((id) => ({
          id,
          bandwidth: 1,
          codec: "avc1.64001f",
          timescale: 30_000,
          segments: segments(30_000),
          video: { width: 640, height: 360, frameRate: "30" },
        })),
      },
      {
        kind: "audio",
        language: null,
        isMain: true,
        representations: [
          {
            id: "audio",
            bandwidth: 1,
            codec: "mp4a.40.2",
            timescale: 48_000,
            segments: segments(48_000),
            audio: { sampleRate: 48_000, channels: 2 },
          },
        ],
      },
    ],
  });
  const master = [
    "#EXTM3U",
    "#EXT-X-VERSION:7",
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="Audio",DEFAULT=YES,AUTOSELECT=YES,URI="audio/playlist.m3u8"',
    ...RENDITIONS.flatMap((name) => [
      '#EXT-X-STREAM-INF:BANDWIDTH=1000000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=640x360,AUDIO="audio"',
      `${name}/playlist.m3u8`,
    ]),
    ...RENDITIONS.map(
      (name) =>
        `#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=100000,CODECS="avc1.64001f",RESOLUTION=640x360,URI="${name}/iframes.m3u8"`,
    ),
    "",
  ].join("\n");
  const step = Math.ceil(seconds / THUMBNAILS / SEGMENT) * SEGMENT;
  const cues = Array.from({ length: Math.floor(seconds / step) }, (_, index) => {
    const place = `${(index % 10) * 160},${Math.floor(index / 10) * 90}`;
    return `${time(index * step)} --> ${time((index + 1) * step)}\nstoryboard-1.jpg#xywh=${place},160,90\n`;
  });
  return {
    "master.m3u8": master,
    "manifest.mpd": mpd,
    "storyboard.vtt": `WEBVTT\n\n${cues.join("\n")}`,
    ...Object.fromEntries(
      RENDITIONS.flatMap((name) => [
        [`${name}/playlist.m3u8`, playlist()],
        [`${name}/iframes.m3u8`, playlist(true)],
      ]),
    ),
    "audio/playlist.m3u8": playlist(),
  };
}

/** A subtitle text with a cue every three seconds. */
export const longSubtitle = (seconds: number): string =>
  `WEBVTT\n\n${Array.from({ length: Math.floor(seconds / 3) }, (_, index) => `${time(index * 3)} --> ${time(index * 3 + 2.5)}\nWhat is said in second ${index * 3}.\n`).join("\n")}`;

function time(seconds: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return `${two(hours)}:${two(minutes)}:${(seconds % 60).toFixed(3).padStart(6, "0")}`;
}
