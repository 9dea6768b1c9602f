import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { componentsOf, STAGES } from "#scripts/ffmpeg/components.ts";
import { configureArguments } from "#scripts/ffmpeg/recipe.ts";

const configured = readFileSync(join(import.meta.dirname, "../../../scripts/ffmpeg/configured.txt"), "utf8");
/** What `configure` selected for the linked build: symbols such as `ff_h264_decoder`. */
const selected = (list: string) => {
  const [, names = ""] = new RegExp(`^\\[${list}_list\\.c: .*\\]\\n([^[]*)`, "m").exec(configured) ?? [];
  return names.split(/\s+/).filter(Boolean);
};

test("all stages of ffmpeg have the same components, except those of AV1", () => {
  const complete = componentsOf("complete");
  const withoutAv1 = (names: string[] = []) =>
    names.filter((name) => !["libdav1d", "libaom_av1", "libsvtav1"].includes(name));
  for (const stage of STAGES) {
    const components = componentsOf(stage);
    expect(Object.keys(components)).toEqual(Object.keys(complete));
    for (const [kind, names] of Object.entries(components))
      expect(withoutAv1(names), kind).toEqual(withoutAv1(complete[kind]));
    expect(components.decoder).toContain(stage === "linked" ? "libaom_av1" : "libdav1d");
    expect(components.encoder?.includes("libsvtav1")).toBe(stage !== "linked");
  }
});

test.each(STAGES)("as %s, ffmpeg has no network, and no component that is not listed", (stage) => {
  const args = configureArguments("", stage);
  for (const arg of [
    "--disable-everything",
    "--disable-autodetect",
    "--disable-network",
    "--enable-protocol=file,pipe",
  ])
    expect(args).toContain(arg);
  const enabled = args.filter((arg) => /^--enable-[a-z]+=/.test(arg));
  expect(enabled).toEqual(
    Object.entries(componentsOf(stage)).map(([kind, names]) => `--enable-${kind}=${names.join(",")}`),
  );
  const link = args.find((arg) => arg.startsWith("--extra-ldflags="));
  expect(link).toContain("-Wl,-z,relro,-z,now,-z,noexecstack");
});

test("the kept result of ffmpeg's configure is that of the listed components", () => {
  const {
    decoder = [],
    encoder = [],
    demuxer = [],
    muxer = [],
    protocol = [],
    filter = [],
    bsf = [],
    parser = [],
  } = componentsOf("linked");
  const symbols = (names: string[], kind: string) => names.map((name) => `ff_${name}_${kind}`);
  const protocols = selected("libavformat/protocol");
  expect(protocols).toEqual(symbols(protocol, "protocol"));
  expect(protocols).toEqual(["ff_file_protocol", "ff_pipe_protocol"]);
  // `configure` adds components that others need.
  const added = (list: string, listed: string[]) => selected(list).filter((name) => !listed.includes(name));
  const codecs = [...symbols(decoder, "decoder"), ...symbols(encoder, "encoder")];
  expect(selected("libavcodec/codec")).toEqual(expect.arrayContaining(codecs));
  expect({
    codecs: added("libavcodec/codec", codecs),
    demuxers: added("libavformat/demuxer", symbols(demuxer, "demuxer")),
    muxers: added("libavformat/muxer", symbols(muxer, "muxer")),
    bitstreamFilters: added("libavcodec/bsf", symbols(bsf, "bsf")),
    parsers: added("libavcodec/parser", symbols(parser, "parser")),
    filters: selected("libavfilter/filter").filter((name) => !filter.includes(name.replace(/^ff_[a-z]+_/, ""))),
  }).toEqual({
    codecs: [],
    demuxers: [],
    // What MPEG-TS, MXF and Matroska need, and the ends of every filter graph.
    muxers: ["ff_latm_muxer"],
    bitstreamFilters: ["ff_pcm_rechunk_bsf", "ff_pgs_frame_merge_bsf"],
    parsers: [],
    filters: ["ff_asrc_abuffer", "ff_vsrc_buffer", "ff_asink_abuffer", "ff_vsink_buffer"],
  });
});
