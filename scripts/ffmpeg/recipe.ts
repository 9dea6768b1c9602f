import { createHash } from "node:crypto";
import type { Arch } from "../build/base.ts";

/**
 * The features of our own ffmpeg, which bound what an untrusted file can make it do. Everything is off unless it is
 * listed here: no network, no playlist, concat or image-sequence demuxer, no filter that opens a file, and `file` and
 * `pipe` as the only protocols. A playlist that is named video.mp4 is therefore just invalid data.
 */
const parts: Record<string, string> = {
  // Container formats of common uploads. `*_pipe` read exactly one image: cover art and posters. The raw streams of the
  // last line are what the program stream demuxer uses to detect its content; none is accepted for uploads.
  demuxer: `mov matroska avi mpegts mpegps flv ogg asf wav mp3 aac flac mxf dv image_jpeg_pipe image_png_pipe
    image_webp_pipe gif
    mpegvideo m4v h264 hevc ac3 eac3 dts`,
  decoder: `h264 hevc vp8 libvpx_vp8 libvpx_vp9 vp9 libdav1d mpeg1video mpeg2video mpeg4 prores mjpeg png webp gif dnxhd
    theora vp3 vp6 vp6f vp6a flv h263 h263i h263p wmv1 wmv2 wmv3 vc1 msmpeg4v1 msmpeg4v2 msmpeg4v3 cinepak huffyuv
    ffvhuff ffv1 rawvideo dvvideo svq1 svq3 qtrle utvideo v210 wrapped_avframe
    aac aac_latm ac3 eac3 dca mlp truehd mp1 mp2 mp3 opus vorbis flac alac amrnb amrwb wmav1 wmav2 wmapro
    pcm_alaw pcm_mulaw pcm_bluray pcm_dvd pcm_u8 pcm_s8 pcm_s16be pcm_s16le pcm_s16le_planar pcm_s24be pcm_s24le
    pcm_s32be pcm_s32le pcm_s64le pcm_f32be pcm_f32le pcm_f64be pcm_f64le
    adpcm_ima_qt adpcm_ima_wav adpcm_ms adpcm_swf adpcm_yamaha adpcm_g722 adpcm_g726 nellymoser speex
    subrip ass ssa movtext webvtt`,
  parser: `h264 hevc vp8 vp9 av1 vp3 mpeg4video mpegvideo mpegaudio mjpeg png webp gif dnxhd vc1 h263 vorbis opus flac aac
    aac_latm ac3 dca mlp amr`,
  bsf: `h264_mp4toannexb hevc_mp4toannexb aac_adtstoasc extract_extradata dump_extradata remove_extradata vp9_superframe
    vp9_superframe_split vp9_raw_reorder av1_frame_merge av1_frame_split av1_metadata h264_metadata hevc_metadata
    mpeg4_unpack_bframes mjpeg2jpeg mov2textsub text2movsub eac3_core setts null filter_units`,
  // The first line is what the product writes; the rest creates test material of every accepted kind.
  encoder: `libx264 libx265 libsvtav1 aac mjpeg png libwebp libwebp_anim gif pcm_s16le rawvideo wrapped_avframe webvtt subrip
    libvpx_vp8 libvpx_vp9 libopus mpeg1video mpeg2video mpeg4 msmpeg4v3 wmv2 flv h263 prores_ks dnxhd ffv1 dvvideo
    ac3 eac3 mp2 flac alac wmav2 pcm_s24le pcm_alaw adpcm_ima_wav movtext`,
  muxer: `mp4 mov dash hls webm matroska mpegts image2 image2pipe mjpeg webp gif wav null webvtt srt ffmetadata rawvideo
    avi flv asf mxf tgp ipod mpeg1system mpeg2vob ogg opus adts mp2 flac h264 framecrc framemd5 hash md5 crc
    streamhash pcm_s16le data`,
  filter: `scale zscale tonemap fps format aformat split asplit transpose rotate hflip vflip yadif bwdif interlace
    tinterlace idet setsar setdar setfield setparams setpts asetpts settb asettb aresample asetnsamples pan
    channelsplit channelmap join anull null copy acopy nullsink anullsink crop cropdetect pad apad tile thumbnail
    select aselect blackframe blackdetect freezedetect silencedetect volumedetect signalstats metadata ametadata
    showinfo ssim psnr identity noise testsrc testsrc2 sine aevalsrc color smptebars smptehdbars anullsrc overlay
    hstack vstack drawbox fade afade concat trim atrim amix amerge loudnorm ebur128 volume showwavespic framestep
    colorspace colorchannelmixer alimiter tpad palettegen
    paletteuse`,
  protocol: "file pipe",
  // testsrc2 and sine for the demo and the tests. Uploads are opened with a list of allowed demuxers, which does not
  // include it.
  indev: "lavfi",
};

const words = (text: string) => text.split(/\s+/).filter(Boolean);

/** Debian packages that the build needs: a compiler, and libraries with their static archives. */
const nativePackages = words(`gcc g++ make nasm pkg-config dpkg-dev xz-utils zlib1g-dev
  meson ninja-build cmake
  libx264-dev libvpx-dev libopus-dev libwebp-dev libzimg-dev`);

/**
 * A build for another processor: its compiler is installed, and its libraries are unpacked into a directory, where they
 * cannot conflict with installed ones.
 */
const crossPackages = (prefix: string) => [
  ...words("make nasm pkg-config dpkg-dev xz-utils meson ninja-build cmake"),
  ...[`gcc-${prefix}`, `g++-${prefix}`],
];

/** Libraries linked into the result, by Debian package: their versions are recorded next to it. */
export const linkedPackages = words("libx264-dev libvpx-dev libopus-dev libwebp-dev libzimg-dev zlib1g-dev libc6-dev");

/** Arguments of `./configure`. `revision` is the distribution's suffix, so that `-version` names the patched source. */
export function configureArguments(revision: string): string[] {
  return [
    `--extra-version=${revision}`,
    ...words(
      "--disable-everything --disable-autodetect --disable-iconv --disable-network --disable-doc --disable-debug",
    ),
    ...words("--disable-ffplay --disable-shared --enable-static --enable-pic --enable-pthreads --enable-gpl"),
    ...words("--enable-zlib --enable-libx264 --enable-libvpx --enable-libopus --enable-libwebp --enable-libzimg"),
    ...words("--enable-libdav1d --enable-libx265 --enable-libsvtav1"),
    "--pkg-config-flags=--static",
    // Position-independent although static: a program that parses untrusted bytes should not have fixed addresses.
    "--extra-cflags=-fPIE -fstack-protector-strong -D_FORTIFY_SOURCE=2",
    "--extra-ldflags=-Wl,-z,relro,-z,now,-z,noexecstack",
    "--extra-ldexeflags=-static-pie",
    // zimg's static archive needs libm without declaring it.
    "--extra-libs=-lm",
    ...Object.entries(parts).map(([kind, names]) => `--enable-${kind}=${words(names).join(",")}`),
  ];
}

/**
 * `meson setup` arguments for dav1d, which decodes AV1 in a third of libaom's processor time. The distribution has no
 * static archive of it, so it is compiled from the source package into `prefix` before ffmpeg.
 */
export const dav1dArguments = (prefix: string): string[] => [
  ...words("--buildtype=release --default-library=static -Db_staticpic=true -Dc_args=-fstack-protector-strong"),
  ...words("-Denable_tools=false -Denable_tests=false -Denable_examples=false -Denable_docs=false"),
  ...["--libdir=lib", `--prefix=${prefix}`],
];

/**
 * `./configure` arguments of x264 for arm64, where the distribution's archive is not position-independent. The
 * bit depths and the processor's optimizations are the defaults.
 */
export const x264Arguments = (prefix: string, cross: Target["cross"]): string[] => [
  ...words("--enable-static --enable-pic --disable-cli --disable-opencl"),
  ...["--extra-cflags=-fstack-protector-strong -D_FORTIFY_SOURCE=2", `--prefix=${prefix}`],
  ...(cross ? [`--host=${cross.prefix}`, `--cross-prefix=${cross.prefix}-`] : []),
];

/**
 * Included before each file of SVT-AV1 for arm64: its variables of other files are then addressed directly. Otherwise
 * each has an entry in the table of a position-independent program (GOT), of which the distribution's libc.a cannot
 * address more than 4,096.
 */
export const HIDDEN_HEADER = { name: "hidden.h", content: "#pragma GCC visibility push(hidden)\n" };

/** `cmake` arguments that x265 and SVT-AV1 share. */
const cmakeArguments = (prefix: string, cross: Target["cross"], flags = ""): string[] => [
  ...words("-G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_LIBDIR=lib"),
  ...["C", "CXX"].map((one) => `-DCMAKE_${one}_FLAGS=-fstack-protector-strong -D_FORTIFY_SOURCE=2${flags}`),
  `-DCMAKE_INSTALL_PREFIX=${prefix}`,
  ...(cross
    ? [
        ...["-DCMAKE_SYSTEM_NAME=Linux", `-DCMAKE_SYSTEM_PROCESSOR=${cross.cpu}`],
        ...[`-DCMAKE_C_COMPILER=${cross.prefix}-gcc`, `-DCMAKE_CXX_COMPILER=${cross.prefix}-g++`],
      ]
    : []),
];

/** Of the archive with x265's encoder of 10 bit, which the one of 8 bit calls. */
export const X265_10BIT_ARCHIVE = "x265-10bit";

/**
 * For x265, whose bit depth is fixed at compilation: it is compiled twice, and the library of 8 bit is linked with that of
 * 10 bit, which exports no names of its own. It is compiled because the distribution's archive also contains an encoder of
 * 12 bit. As there, its assembly is used on x64 only.
 */
export const x265Arguments = (
  prefix: string,
  { arch, cross }: Pick<Target, "arch" | "cross">,
  bits: 8 | 10,
): string[] => [
  ...cmakeArguments(prefix, cross),
  ...words("-DENABLE_SHARED=OFF -DENABLE_CLI=OFF -DENABLE_LIBNUMA=OFF -DENABLE_PIC=ON"),
  `-DENABLE_ASSEMBLY=${arch === "x64" ? "ON" : "OFF"}`,
  ...(cross ? ["-DCROSS_COMPILE_ARM=ON"] : []),
  ...(bits === 10
    ? words("-DHIGH_BIT_DEPTH=ON -DEXPORT_C_API=OFF")
    : [`-DEXTRA_LIB=${X265_10BIT_ARCHIVE}`, "-DLINKED_10BIT=ON"]),
];

/**
 * For SVT-AV1, of which the distribution has no static archive. This version has no assembly for arm64. `headers` is the
 * directory of the header above.
 */
export const svtAv1Arguments = (
  prefix: string,
  { arch, cross, headers }: Pick<Target, "arch" | "cross"> & { headers: string },
): string[] => [
  ...cmakeArguments(prefix, cross, arch === "arm64" ? ` -include ${headers}/${HIDDEN_HEADER.name}` : ""),
  // With the header only static programs can be linked, those of cmake's tests too.
  ...(arch === "arm64" ? ["-DCMAKE_EXE_LINKER_FLAGS=-static"] : []),
  ...words("-DBUILD_SHARED_LIBS=OFF -DBUILD_APPS=OFF -DBUILD_DEC=OFF -DREPRODUCIBLE_BUILDS=ON -DENABLE_NASM=ON"),
];

/** Files with notices of compiled libraries, next to the programs, and what the notices are of. */
export const LIBRARY_NOTICES: Record<string, string> = {
  "COPYING.dav1d": "dav1d, in FFmpeg",
  "COPYING.SVT-AV1": "SVT-AV1, in FFmpeg",
};

/** What is compiled for, and with what. */
export type Target = {
  arch: Arch;
  /** Packages to install. */
  packages: string[];
  /** Names the recipe: changes whenever the build would change. */
  recipeHash: string;
  /** The compiler's prefix and its processor, as GNU and meson name them; null for this machine's own processor. */
  cross: { prefix: string; cpu: string } | null;
  /** Whether x264 is compiled too, instead of linking the distribution's archive. */
  withX264: boolean;
};

const hashOf = (recipe: unknown) => createHash("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 12);

/** The target `arch`, built on this machine. */
export function targetFor(arch: Arch): Target {
  const withX264 = arch === "arm64";
  const cpu = { x64: "x86_64", arm64: "aarch64" }[arch];
  const cross = arch === process.arch ? null : { prefix: `${cpu}-linux-gnu`, cpu };
  // Packages have a hyphen where the compiler's name has an underscore.
  const packages = cross ? crossPackages(cross.prefix.replaceAll("_", "-")) : nativePackages;
  const more = [
    ...(cross ? [linkedPackages, crossArguments(cross, "SYSROOT"), crossFile(cross)] : []),
    ...(withX264 ? [x264Arguments("", cross)] : []),
  ];
  const target = { arch, cross };
  const svtAv1 = svtAv1Arguments("", { ...target, headers: HIDDEN_HEADER.content });
  const x265 = [x265Arguments("", target, 8), x265Arguments("", target, 10)];
  const libraries = [dav1dArguments(""), ...x265, svtAv1];
  const recipeHash = hashOf([configureArguments(""), ...libraries, packages, ...more]);
  return { ...target, packages, recipeHash, withX264 };
}

type Cross = NonNullable<Target["cross"]>;

/** Arguments of `./configure` for another processor; they follow `configureArguments`, and repeat what they replace. */
export function crossArguments({ prefix, cpu }: Cross, sysroot: string): string[] {
  const [headers, libraries] = [`${sysroot}/usr/include`, `${sysroot}/usr/lib/${prefix}`];
  return [
    ...["--enable-cross-compile", "--target-os=linux", `--arch=${cpu}`, `--cross-prefix=${prefix}-`],
    "--pkg-config=pkg-config",
    `--extra-cflags=-isystem ${headers} -isystem ${headers}/${prefix}`,
    // -B: the C library's start files are those of the directory too, because its libc.a has later security fixes than
    // the cross compiler's.
    `--extra-ldflags=-B${libraries} -L${libraries}`,
  ];
}

/** meson's description of another processor. */
export const crossFile = ({ prefix, cpu }: Cross): string =>
  [
    "[binaries]",
    ...["c:gcc", "cpp:g++", "ar:ar", "strip:strip"].map((pair) => {
      const [name, program] = pair.split(":");
      return `${name} = '${prefix}-${program}'`;
    }),
    ...["[host_machine]", "system = 'linux'", `cpu_family = '${cpu}'`, `cpu = '${cpu}'`, "endian = 'little'", ""],
  ].join("\n");
