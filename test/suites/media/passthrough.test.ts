import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import HLS from "hls-parser";
import { afterAll, describe, expect, test, vi } from "vitest";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { rows } from "#test/support/amount.ts";
import { beeping, flashing, words } from "#test/support/media/matrix-sources.ts";
import { complaints, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";
import { encodedSource } from "./encoded-source.ts";

vi.setConfig({ maxConcurrency: 2 });

const folder = temporaryFolder("passthrough");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const GOP = "keyint=50:min-keyint=1:scenecut=0";
const x264 = (params = GOP) => [
  ...words("-c:v libx264 -preset veryfast -crf 26 -pix_fmt yuv420p -x264-params"),
  params,
];
const clip = (rate = "25", seconds = 9, size = "640x360") => [...flashing(size, rate, seconds), ...beeping(seconds)];

/** A checksum of what a decoder of the rendition receives: equal for a copy, whatever its container. */
const sumOf = async (path: string) =>
  (
    await ffmpeg(
      "-i",
      path,
      "-map",
      "0:v",
      "-c",
      "copy",
      "-bsf:v",
      "h264_mp4toannexb,filter_units=pass_types=1-5",
      "-f",
      "md5",
      "-",
    )
  ).toString();

async function made(name: string, args: string[], damage?: (whole: Buffer) => Buffer) {
  const input = join(folder, name);
  const { result, dir } = await encodedSource({ input, args, spec, scratchDir: folder, damage });
  const top = result.renditions[0]?.playlist_path as string;
  const isCopy = (await sumOf(input)) === (await sumOf(join(dir, top)));
  return { ...result, dir, isCopy, cuts: result.renditions.map(({ playlist_path }) => cutsOf(dir, playlist_path)) };
}

const cutsOf = (dir: string, uri: string) =>
  (HLS.parse(readFileSync(join(dir, uri), "utf8")) as unknown as { segments: { duration: number }[] }).segments.map(
    ({ duration }) => Number(duration.toFixed(2)),
  );

describe.concurrent("a source that fits is its own top rendition", () => {
  test.each(
    rows(
      [
        ["25 a second", "a.mp4", [...clip(), ...x264()], [4, 4, 1]],
        ["29.97 a second", "b.mp4", [...clip("30000/1001"), ...x264("keyint=60:min-keyint=1:scenecut=0")], [4, 4, 1]],
        ["key frames every 3 s", "c.mov", [...clip("24", 10), ...x264("keyint=72:min-keyint=1:scenecut=0")], [6, 3, 1]],
        [
          "a second key frame at every cut",
          "d.mp4",
          [...clip(), ...x264("keyint=25:min-keyint=1:scenecut=0")],
          [4, 4, 1],
        ],
        [
          "baseline, without audio",
          "e.mp4",
          [...flashing("640x360", "25", 5), ...words("-profile:v baseline"), ...x264()],
          [4, 1],
        ],
      ],
      1,
    ),
  )("%s", async (_, name, args, cuts) => {
    const result = await made(name, args);
    expect(result.isCopy).toBe(true);
    expect(result.renditions.map((one) => one.name)).toEqual(["360p", "240p"]);
    for (const each of result.cuts) expect(each.map(Math.round)).toEqual(cuts);
    expect(result.cuts[1]).toEqual(result.cuts[0]);
    expect(await complaints("-i", join(result.dir, "master.m3u8"), "-map", "0", "-f", "null", "-")).toBe("");
    expect(await complaints("-i", join(result.dir, "manifest.mpd"), "-map", "0", "-f", "null", "-")).toBe("");
    expect(result.storyboard).not.toBeNull();
    // Compares frames at the same time: the small rendition with the copied one.
    const [top, low] = result.renditions.map(({ playlist_path }) => join(result.dir, playlist_path)) as [
      string,
      string,
    ];
    const graph = "[0:v]scale=426:240:flags=bicubic[a];[1:v]scale=426:240[b];[a][b]ssim";
    const log = await complaints("-v", "info", "-i", top, "-i", low, "-lavfi", graph, "-f", "null", "-");
    expect(Number(/SSIM .*All:([\d.]+)/.exec(log)?.[1])).toBeGreaterThan(0.9);
    const [first] = (
      await ffprobe("-show_entries", "stream=start_time", "-select_streams", "v", "-of", "csv=p=0", top)
    ).split("\n");
    expect(Number.parseFloat(first ?? "")).toBe(0);
  });
});

const scratched = (whole: Buffer) => {
  const at = Math.floor(whole.indexOf("mdat") + (whole.length - whole.indexOf("mdat")) / 2);
  return whole.fill(0x55, at, at + 3000);
};

describe.concurrent("a source that does not fit is encoded", () => {
  test.each<[string, string, string[], ((whole: Buffer) => Buffer)?]>(
    rows(
      [
        ["key frames 10 s apart", "k.mp4", [...clip("25", 11), ...x264("keyint=250:scenecut=0")]],
        [
          "key frames at odd times",
          "l.mp4",
          [...clip("25", 12), ...x264("keyint=250:scenecut=0"), "-force_key_frames", "3.9,7.9,8.1,11.9"],
        ],
        ["open groups", "m.mp4", [...clip(), ...x264(`${GOP}:open-gop=1:bframes=3:b-adapt=0`)]],
        [
          "a variable rate",
          "n.mp4",
          [...clip("30"), "-vf", "select='not(eq(mod(n\\,10)\\,3))'", "-fps_mode", "vfr", ...x264()],
        ],
        ["a frame missing", "o.mp4", [...clip("30"), "-vf", "select='not(eq(n\\,40))'", "-fps_mode", "vfr", ...x264()]],
        ["too many bits", "p.mp4", [...clip("25", 5), "-vf", "noise=alls=60:allf=t", ...x264(), "-crf", "10"]],
        ["oblong pixels", "q.mp4", [...clip(), "-vf", "setsar=4/3", ...x264()]],
        ["interlaced", "r.mp4", [...clip(), ...x264(`${GOP}:tff=1`)]],
        ["4:4:4", "s.mp4", [...clip(), ...x264(), "-pix_fmt", "yuv444p"]],
        ["a transport stream", "t.ts", [...clip(), ...x264()]],
        [
          "audio before the video",
          "u.mp4",
          [
            ...beeping(9),
            "-itsoffset",
            "0.3",
            ...flashing("640x360", "25", 8.7),
            "-fps_mode",
            "passthrough",
            ...x264(),
          ],
        ],
        ["damaged frames", "v.mp4", [...clip(), ...x264()], scratched],
      ],
      1,
    ),
  )("%s", async (_, name, args, damage) => {
    const result = await made(name, args, damage);
    expect(result.isCopy).toBe(false);
    for (const cuts of result.cuts) expect(cuts).toEqual(result.cuts[0]);
    expect(await complaints("-i", join(result.dir, "master.m3u8"), "-map", "0", "-f", "null", "-")).toBe("");
  });
});

/** Checksum of each audio packet, including those before 0. */
const packetsOf = async (path: string) =>
  (await ffmpeg("-i", path, "-map", "0:a:0", "-c", "copy", "-copypriorss", "1", "-f", "framemd5", "-"))
    .toString()
    .split("\n")
    .flatMap((line) => (/^\d+, .*?, *(\w{32})/.exec(line) ?? []).slice(1));

describe.concurrent("audio", () => {
  const pictures = [...flashing("640x360", "25", 5), ...x264()];
  // No two packets are equal, as they would be with silence.
  const noise = [...words("-f lavfi -i"), "aevalsrc=0.2*random(0)-0.1|0.2*sin(900*t*t):s=48000:d=5"];
  const withSound = (...sound: string[]) => [...noise, ...pictures, ...words("-map 1:v -map 0:a"), ...sound];
  const scratchedSound = (whole: Buffer) => {
    // With its index at the end and B-frames in each second, the audio's bytes are at the end of the data.
    const at = whole.indexOf("moov") - 1500;
    return whole.fill(0xff, at, at + 700);
  };

  test.each<[string, string, string[], { isCopied: boolean; channels?: number; rate?: string }]>(
    rows(
      [
        [
          "of one, at 44.1 kHz",
          "sb.mp4",
          withSound(...words("-c:a aac -ac 1 -ar 44100")),
          { isCopied: true, channels: 1, rate: "44100" },
        ],
        [
          "with a gap",
          "sg.mp4",
          withSound(...words("-ac 2 -c:a aac -af"), "aselect='not(between(t,2,2.5))'"),
          { isCopied: false, channels: 2 },
        ],
        ["of six channels", "sc.mp4", withSound(...words("-c:a aac -ac 6")), { isCopied: false, channels: 2 }],
        ["of two channels", "sa.mp4", withSound(...words("-c:a aac -ac 2 -b:a 160k")), { isCopied: true, channels: 2 }],
        ["at 22 kHz", "sd.mp4", withSound(...words("-c:a aac -ar 22050")), { isCopied: false, channels: 2 }],
        ["that is no AAC", "se.mp4", withSound(...words("-c:a ac3")), { isCopied: false, channels: 2 }],
        ["with too many bits", "sf.mp4", withSound(...words("-c:a aac -b:a 500k")), { isCopied: false, channels: 2 }],
      ],
      3,
    ),
  )("%s", async (_, name, args, { isCopied, channels, rate = "48000" }) => {
    const { dir, manifest, dash, isCopy } = await made(name, args);
    expect(isCopy).toBe(true);
    const source = await packetsOf(join(folder, name));
    const ours = await packetsOf(join(dir, "audio/playlist.m3u8"));
    expect(ours.length).toBeGreaterThan(100);
    if (isCopied) expect(ours).toEqual(source.slice(0, ours.length));
    else expect(ours.slice(20, 30)).not.toEqual(source.slice(20, 30));
    expect(readFileSync(join(dir, manifest), "utf8")).toContain(`CHANNELS="${channels}"`);
    expect(readFileSync(join(dir, dash), "utf8")).toContain(`audioSamplingRate="${rate}"`);
    expect(await complaints("-i", join(dir, manifest), "-map", "0", "-f", "null", "-")).toBe("");
  });

  test("that is damaged is encoded, and the video with it", async () => {
    const result = await made("sz.mp4", withSound(...words("-c:a aac -ac 2")), scratchedSound);
    const source = await packetsOf(join(folder, "sz.mp4"));
    const ours = await packetsOf(join(result.dir, "audio/playlist.m3u8"));
    expect(ours.slice(20, 30)).not.toEqual(source.slice(20, 30));
    expect(await complaints("-i", join(result.dir, "master.m3u8"), "-map", "0", "-f", "null", "-")).toBe("");
  });
});
