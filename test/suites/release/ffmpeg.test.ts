import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { componentsOf, type Stage } from "#scripts/ffmpeg/components.ts";
import { readConfigured } from "#scripts/ffmpeg/configured.ts";
import { encodesAv1 } from "#test/support/media/av1.ts";

const ffmpeg = join(import.meta.dirname, "../../../build/assets/bin/ffmpeg");
const ffprobe = join(import.meta.dirname, "../../../build/assets/bin/ffprobe");
/** A build may ship another ffmpeg (VODBOX_BUILD_FFMPEG): these are the guarantees of ours. */
const configuration = existsSync(ffmpeg) ? execFileSync(ffmpeg, ["-version"], { encoding: "utf8" }) : "";
const isOurs = configuration.includes("--disable-network");
const isComplete = configuration.includes("-static-pie");
/** In the full tier that of the first build, which compiles no encoder of AV1; in the nightly one the complete one. */
const stage: Stage = isComplete ? "complete" : encodesAv1 ? "linked-av1" : "linked";

const configured = readConfigured();
/** The rows of ffmpeg's lists, which begin with flags. */
const ROWS: Record<string, RegExp> = {
  encoder: /^ [VAS][A-Z.]{5} (?!=)\S/gm,
  decoder: /^ [VAS][A-Z.]{5} (?!=)\S/gm,
  demuxer: /^ {1,2}D[E d]? +(?!=|Demuxing)\S/gm,
  muxer: /^ {2}E[d ]? +(?!=|Muxing)\S/gm,
  filter: /^ [T.][S.][C.] \S+ +\S+->\S+/gm,
  bsf: /^(?!Bitstream)\S+$/gm,
};

describe.skipIf(!isOurs)("our own ffmpeg", () => {
  let folder: string;
  const run = (...args: string[]) =>
    spawnSync(ffmpeg, ["-v", "error", "-nostdin", "-y", ...args], { cwd: folder, env: {}, encoding: "utf8" });
  const probe = (file: string, entries: string) =>
    execFileSync(ffprobe, ["-v", "error", "-show_entries", entries, "-of", "csv=p=0", file], {
      cwd: folder,
      encoding: "utf8",
    });
  const pictures = (rest: string) => ["-f", "lavfi", "-i", `testsrc2=s=640x360:r=30:${rest}`];

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "vodbox-ffmpeg-"));
    const made = run(...pictures("d=4"), "-f", "lavfi", "-i", "sine=d=4", "-c:v", "libx264", "-c:a", "aac", "clip.mp4");
    expect(made.stderr).toBe("");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("supports no protocol but file and pipe", () => {
    const shown = execFileSync(ffmpeg, ["-hide_banner", "-protocols"], { encoding: "utf8" });
    expect(new Set(shown.match(/^ {2}\w+$/gm)?.map((line) => line.trim()))).toEqual(new Set(["file", "pipe"]));
  });

  test.each(["encoder", "decoder", "demuxer", "muxer", "filter", "bsf"])(
    "has the %ss of its recipe and no others",
    (kind) => {
      const { encoder = [], decoder = [] } = componentsOf(stage);
      const listed = (list: string) => configured.lists[list]?.names ?? [];
      const codecs = listed("libavcodec/codec_list.c");
      const ending = (end: string) => codecs.filter((name) => name.endsWith(end)).length;
      // `configured` is of the stage without an encoder of AV1. The decoder has another name in each stage.
      expect(ending("_encoder") + (stage === "linked" ? 0 : 1)).toBe(encoder.length);
      expect(ending("_decoder")).toBe(decoder.length);
      const expected: Record<string, number> = {
        encoder: encoder.length,
        decoder: decoder.length,
        demuxer: listed("libavformat/demuxer_list.c").length + listed("libavdevice/indev_list.c").length,
        muxer: listed("libavformat/muxer_list.c").length,
        filter: listed("libavfilter/filter_list.c").length,
        bsf: listed("libavcodec/bsf_list.c").length,
      };
      const shown = execFileSync(ffmpeg, ["-hide_banner", `-${kind}s`], { encoding: "utf8" });
      expect(shown.match(ROWS[kind] as RegExp)?.length).toBe(expected[kind]);
    },
  );

  test("decodes AV1, and encodes it unless it is linked from the distribution's archives alone", () => {
    const list = (kind: string) => execFileSync(ffmpeg, ["-hide_banner", `-${kind}`], { encoding: "utf8" });
    expect(list("decoders")).toContain(stage === "linked" ? " libaom-av1 " : " libdav1d ");
    expect(list("encoders").includes(" libsvtav1 ")).toBe(stage !== "linked");
  });

  test("is static, with read-only relocations and no executable stack; at a random address if it is complete", () => {
    const shown = execFileSync("readelf", ["-hlW", ffmpeg], { encoding: "utf8" });
    expect(shown).not.toContain("Requesting program interpreter");
    expect(/^ +Type: +(\w+)/m.exec(shown)?.[1]).toBe(isComplete ? "DYN" : "EXEC");
    expect(shown).toContain("GNU_RELRO");
    expect(/GNU_STACK.* (RWE|RW ) /.exec(shown)?.[1]).toBe("RW ");
  });

  test("is one program with ffprobe, which runs what it is called as", () => {
    expect(readFileSync(ffmpeg).equals(readFileSync(ffprobe))).toBe(true);
    const version = (program: string) => execFileSync(program, ["-version"], { encoding: "utf8" }).split(" ", 1)[0];
    expect([ffmpeg, ffprobe].map(version)).toEqual(["ffmpeg", "ffprobe"]);
    symlinkSync(ffprobe, join(folder, "ffprobe"));
    expect(version(join(folder, "ffprobe"))).toBe("ffprobe");
  });

  test.each([
    ["an HLS playlist", "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"],
    ["a concat list", "ffconcat version 1.0\nfile /etc/passwd\n"],
    ["a DASH manifest", `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"></MPD>`],
    ["a subtitle file", "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n"],
  ])("treats %s that is named .mp4 as invalid", (_, content) => {
    writeFileSync(join(folder, "evil.mp4"), content);
    const { status, stderr } = run("-i", "evil.mp4", "-f", "null", "-");
    expect(status).not.toBe(0);
    expect(stderr).toContain("Invalid data found when processing input");
  });

  test("encodes a scaled ladder for DASH and HLS in one run", () => {
    const graph = "[0:v]split=2[a][b];[a]scale=426:240[v0];[b]scale=256:144[v1]";
    const maps = ["-map", "[v0]", "-map", "[v1]", "-map", "0:a", "-c:v", "libx264", "-g", "60", "-c:a", "aac"];
    const sets = ["-adaptation_sets", "id=0,streams=v id=1,streams=a", "-seg_duration", "2", "-hls_playlist", "1"];
    expect(run("-i", "clip.mp4", "-filter_complex", graph, ...maps, "-f", "dash", ...sets, "stream.mpd").stderr).toBe(
      "",
    );
    expect(readFileSync(join(folder, "master.m3u8"), "utf8").match(/RESOLUTION=\d+x\d+/g)).toHaveLength(2);
    expect(readFileSync(join(folder, "stream.mpd"), "utf8").match(/<Representation /g)).toHaveLength(3);
  });

  test("creates animations as GIF with an optimized palette, and as WebP", () => {
    const graph = "fps=5,scale=160:-2,split[a][b];[a]palettegen[p];[b][p]paletteuse";
    expect(run("-t", "1", "-i", "clip.mp4", "-vf", graph, "moves.gif").stderr).toBe("");
    expect(readFileSync(join(folder, "moves.gif")).toString("latin1", 0, 6)).toBe("GIF89a");
    expect(run("-t", "1", "-i", "clip.mp4", "-vf", "fps=5", "-c:v", "libwebp_anim", "moves.webp").stderr).toBe("");
    expect(readFileSync(join(folder, "moves.webp")).includes("ANMF")).toBe(true);
  });

  test("tone-maps ten-bit HDR to SDR", () => {
    const to = "format=yuv444p10le,zscale=min=709:tin=709:pin=709:rin=tv:m=2020_ncl:t=smpte2084:p=2020:r=tv";
    // VP9's second profile, because x264 in this build may support only eight bits.
    const hdr = [...pictures("d=0.5"), "-vf", `${to},format=yuv420p10le`, "-c:v", "libvpx-vp9", "-cpu-used", "8"];
    expect(
      run(...hdr, "-color_trc", "smpte2084", "-color_primaries", "bt2020", "-colorspace", "bt2020nc", "hdr.mkv").stderr,
    ).toBe("");
    expect(probe("hdr.mkv", "stream=pix_fmt,color_transfer")).toBe("yuv420p10le,smpte2084\n");
    const tone =
      "zscale=t=linear:npl=100,format=gbrpf32le,zscale=p=bt709,tonemap=hable:desat=0,zscale=t=bt709:m=bt709:r=tv,format=yuv420p";
    expect(run("-i", "hdr.mkv", "-vf", tone, "-c:v", "libx264", "sdr.mp4").stderr).toBe("");
    expect(probe("sdr.mp4", "stream=pix_fmt,color_transfer")).toBe("yuv420p,bt709\n");
  });

  test.each([
    ["libx265", "yuv420p", "hevc,Main,yuv420p"],
    ["libx265", "yuv420p10le", "hevc,Main 10,yuv420p10le"],
    ...(stage === "linked"
      ? []
      : [
          ["libsvtav1", "yuv420p", "av1,Main,yuv420p"],
          ["libsvtav1", "yuv420p10le", "av1,Main,yuv420p10le"],
        ]),
  ] as [string, string, string][])("encodes with %s in %s", (encoder, format, expected) => {
    const { status } = run(...pictures("d=0.5"), "-c:v", encoder, "-pix_fmt", format, "new.mp4");
    expect(status).toBe(0);
    expect(probe("new.mp4", "stream=codec_name,profile,pix_fmt")).toBe(`${expected}\n`);
  });

  test.each([
    ["mpeg4", "mp2", "avi"],
    ["mpeg2video", "ac3", "ts"],
    ["libvpx", "libopus", "webm"],
    ["prores_ks", "pcm_s16le", "mov"],
    ["dnxhd -b:v 36M -s 1920x1080 -r 25 -pix_fmt yuv422p", "pcm_s16le -ar 48000", "mxf"],
    ["wmv2", "wmav2", "wmv"],
    ["flv", "pcm_s16le -ar 44100", "flv"],
    ["ffv1", "flac", "mkv"],
  ])("reads %s and %s in .%s", (video, audio, extension) => {
    const encode = ["-c:v", ...video.split(" "), "-c:a", ...audio.split(" "), "-t", "1"];
    expect(run("-i", "clip.mp4", ...encode, `source.${extension}`).status).toBe(0);
    // MXF contains a time code, from which the mp4 muxer would create a track.
    const back = ["-c:v", "libx264", "-c:a", "aac", "-write_tmcd", "0", "back.mp4"];
    const { status, stderr } = run("-i", `source.${extension}`, ...back);
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(probe("back.mp4", "stream=codec_name")).toBe("h264\naac\n");
  });

  test("creates posters and storyboards", () => {
    for (const name of ["poster.jpg", "poster.png", "poster.webp"]) {
      expect(run("-i", "clip.mp4", "-vf", "thumbnail", "-frames:v", "1", name).stderr).toBe("");
    }
    expect(run("-i", "clip.mp4", "-vf", "fps=1,scale=160:90,tile=2x2", "-frames:v", "1", "storyboard.jpg").stderr).toBe(
      "",
    );
    expect(probe("storyboard.jpg", "stream=width,height")).toBe("320,180\n");
    expect(readdirSync(folder)).toContain("poster.webp");
  });
});
