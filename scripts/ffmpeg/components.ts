export const words = (text: string): string[] => text.split(/\s+/).filter(Boolean);

/**
 * How the programs are made, best first. `complete`: everything is compiled, position-independent. `linked`: from the
 * distribution's own static archives of the same source, in less than a minute; it decodes AV1 with libaom, and cannot
 * encode it. `linked-av1`: the same with dav1d and SVT-AV1, which are compiled, because the distribution has no static archives
 * of them. Both are needed for exact clips of AV1: libaom does not return the position of chroma, so what is encoded from its
 * frames has another configuration.
 */
export const STAGES = ["complete", "linked-av1", "linked"] as const;
export type Stage = (typeof STAGES)[number];
export type LinkedStage = Exclude<Stage, "complete">;

/**
 * The features of our own ffmpeg, which bound what an untrusted file can make it do. Everything is off unless it is
 * listed here: no network, no playlist, concat or image-sequence demuxer, no filter that opens a file, and `file` and
 * `pipe` as the only protocols. A playlist that is named video.mp4 is therefore just invalid data.
 */
const components: Record<string, string> = {
  // Container formats of common uploads. `*_pipe` read exactly one image: cover art and posters. The raw streams of the
  // last line are what the program stream demuxer uses to detect its content; none is accepted for uploads.
  demuxer: `mov matroska avi mpegts mpegps flv ogg asf wav w64 aiff au caf amr mp3 aac loas flac mxf dv gif apng nut
    image_jpeg_pipe image_png_pipe image_webp_pipe
    mpegvideo m4v h264 hevc ac3 eac3 dts`,
  decoder: `h264 hevc vp8 libvpx_vp8 libvpx_vp9 vp9 libdav1d mpeg1video mpeg2video mpeg4 prores mjpeg png webp gif apng
    dnxhd cfhd jpeg2000 theora vp3 vp6 vp6f vp6a flv h263 h263i h263p wmv1 wmv2 wmv3 vc1 msmpeg4v1 msmpeg4v2 msmpeg4v3 cinepak huffyuv
    ffvhuff ffv1 rawvideo dvvideo svq1 svq3 qtrle utvideo v210 wrapped_avframe
    aac aac_latm ac3 eac3 dca mlp truehd mp1 mp2 mp3 opus vorbis flac alac amrnb amrwb wmav1 wmav2 wmapro
    pcm_alaw pcm_mulaw pcm_bluray pcm_dvd pcm_u8 pcm_s8 pcm_s16be pcm_s16le pcm_s16le_planar pcm_s24be pcm_s24le
    pcm_s32be pcm_s32le pcm_s64le pcm_f32be pcm_f32le pcm_f64be pcm_f64le s302m
    adpcm_ima_qt adpcm_ima_wav adpcm_ms adpcm_swf adpcm_yamaha adpcm_g722 adpcm_g726 nellymoser speex
    subrip ass ssa movtext webvtt`,
  parser: `h264 hevc vp8 vp9 av1 vp3 mpeg4video mpegvideo mpegaudio mjpeg jpeg2000 png webp gif dnxhd vc1 h263 vorbis opus
    flac aac aac_latm ac3 dca mlp amr`,
  bsf: `h264_mp4toannexb hevc_mp4toannexb aac_adtstoasc extract_extradata dump_extradata remove_extradata vp9_superframe
    vp9_superframe_split vp9_raw_reorder av1_frame_merge av1_frame_split av1_metadata h264_metadata hevc_metadata
    mpeg4_unpack_bframes mjpeg2jpeg mov2textsub text2movsub eac3_core setts null filter_units`,
  // The first line is what the product writes; the rest creates test material of every accepted kind.
  encoder: `libx264 libx265 libsvtav1 aac mjpeg png libwebp libwebp_anim gif pcm_s16le rawvideo wrapped_avframe webvtt subrip
    libvpx_vp8 libvpx_vp9 libopus mpeg1video mpeg2video mpeg4 msmpeg4v3 wmv2 flv h263 prores_ks dnxhd ffv1 dvvideo
    ac3 eac3 mp2 flac alac wmav2 pcm_f32le pcm_s24le pcm_alaw adpcm_ima_wav movtext`,
  muxer: `mp4 mov dash hls webm matroska mpegts image2 image2pipe mjpeg webp gif wav null webvtt srt ffmetadata rawvideo
    avi flv asf mxf tgp ipod mpeg1system mpeg2vob ogg opus adts mp2 flac h264 framecrc framemd5 hash md5 crc
    streamhash pcm_s16le data nut`,
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

/** The components of a stage, by the kind in their `--enable-<kind>` option. `linked` differs only in AV1. */
export function componentsOf(stage: Stage): Record<string, string[]> {
  const all = Object.fromEntries(Object.entries(components).map(([kind, names]) => [kind, words(names)]));
  if (stage !== "linked") return all;
  const decoder = all.decoder?.map((name) => (name === "libdav1d" ? "libaom_av1" : name)) ?? [];
  const encoder = all.encoder?.filter((name) => name !== "libsvtav1") ?? [];
  return { ...all, decoder, encoder };
}
