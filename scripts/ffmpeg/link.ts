import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { bar } from "../build/report.ts";
import { run } from "../build/run.ts";
import { words } from "./components.ts";
import { writeConfigured, writeVersion } from "./configured.ts";
import { addMultiCall, MULTI_CALL } from "./multi-call.ts";
import { HARDENED_CODE, HARDENED_LINK } from "./recipe.ts";

/** Those of ffmpeg's Makefile for this compiler, without warnings, which the distribution's build has shown. */
const FLAGS = [
  ...words("-D_ISOC99_SOURCE -D_FILE_OFFSET_BITS=64 -D_LARGEFILE_SOURCE -D_POSIX_C_SOURCE=200112 -D_XOPEN_SOURCE=600"),
  ...words("-DZLIB_CONST -std=c11 -fomit-frame-pointer -pthread -fno-math-errno -fno-signed-zeros -fno-tree-vectorize"),
  ...words(`-fno-pie ${HARDENED_CODE} -w -I.`),
];

/**
 * What is compiled although the archives contain it. These run once for each packet or less, so they are compiled fast: the lists
 * of components, the settings of this build, muxers, and what would refer to network protocols.
 */
const SIMPLE = words(`libavcodec/allcodecs libavcodec/parsers libavcodec/bitstream_filters libavcodec/version
  libavformat/allformats libavformat/protocols libavformat/version libavfilter/allfilters libavfilter/version
  libavdevice/alldevices libavutil/hwcontext libavutil/version libswscale/version libswresample/version
  libavformat/matroskadec libavformat/movenc libavformat/utils libavformat/avio libavformat/dashenc
  libavformat/hlsenc libavformat/sdp libavformat/url libswresample/options`);
/** Compiled as in the distribution: what would refer to hardware decoders and another resampler. */
const FAST = words(`libavcodec/vp8 libavcodec/hevcdec libavcodec/vp9 libavcodec/mpeg4videodec libavcodec/mjpegdec
  libavcodec/h264_slice libavcodec/mpeg12dec libavcodec/h264dec libavcodec/vc1dec libavcodec/h263dec
  libswresample/swresample`);
const BOTH_PROGRAMS = words("fftools/cmdutils fftools/opt_common");
const FFMPEG = words("fftools/ffmpeg fftools/ffmpeg_filter fftools/ffmpeg_hw fftools/ffmpeg_mux fftools/ffmpeg_opt");
const FFPROBE = words("fftools/ffprobe");

/** TLS, which is not used, but objects of the archives call these functions. */
const TLS_STUB = "void ff_gnutls_init(void) {}\nvoid ff_gnutls_deinit(void) {}\n";

/**
 * x265 is built to use libnuma, whose own archive contains functions that open connections. Without NUMA (-1) it calls
 * none of the others.
 */
const NUMA_STUB = `${words(`numa_allocate_cpumask numa_allocate_nodemask numa_bitmask_free numa_bitmask_weight
  numa_max_node numa_node_to_cpus numa_run_on_node_mask numa_set_interleave_mask numa_set_localalloc`)
  .map((name) => `void *${name}(void) { return 0; }`)
  .join("\n")}
int numa_available(void) { return -1; }
`;

/** Inside one group, because they refer to each other in both directions. */
const ARCHIVES = words(`-lavdevice -lavfilter -lavformat -lavcodec -lpostproc -lswscale -lswresample -lavutil
  -lx264 -lx265 -lvpx -lopus -lwebpmux -lwebp -lzimg -lnuma -laom -lz`);
const SYSTEM = words("-lstdc++ -lm -ldl -lpthread -lrt");
const LINK = ["-static", "-Wl,--gc-sections", HARDENED_LINK];

/**
 * Functions that every network protocol needs. `socket` is not one of them: glibc calls it to ask its cache of user names
 * (nscd), in any static program that uses `glob`.
 */
const NETWORK_FUNCTIONS = ["ff_network_init", "getaddrinfo", "listen"];

/** All that decides what is linked from the same archives. */
export const LINK_RECIPE = [
  FLAGS,
  SIMPLE,
  FAST,
  BOTH_PROGRAMS,
  FFMPEG,
  FFPROBE,
  TLS_STUB,
  NUMA_STUB,
  ARCHIVES,
  SYSTEM,
  LINK,
  MULTI_CALL,
];

export type Linkable = {
  /** ffmpeg's source, and the version of its package. */
  source: string;
  version: string;
  /** The unpacked packages with the archives. */
  sysroot: string;
  configuration: string[];
  withSvtAv1: boolean;
};

/** The environment in which `configure`, the compiler and the linker find what is in `sysroot`. */
function environment(sysroot: string): NodeJS.ProcessEnv {
  const libraries = [join(sysroot, "usr/lib/x86_64-linux-gnu"), join(sysroot, "libraries/lib")];
  const includes = ["usr/include", "usr/include/x86_64-linux-gnu"].map((path) => join(sysroot, path));
  // Not as arguments, because the programs print their configuration, which should not contain a temporary directory.
  return {
    ...process.env,
    PATH: `${join(sysroot, "usr/bin")}:${process.env.PATH}`,
    CPATH: includes.join(":"),
    LIBRARY_PATH: libraries.join(":"),
    PKG_CONFIG_LIBDIR: libraries.map((path) => join(path, "pkgconfig")).join(":"),
    PKG_CONFIG_SYSROOT_DIR: sysroot,
  };
}

/** Runs ffmpeg's own `configure`; it links programs with the libraries, so libnuma must be there. */
export async function configure({ source, version, sysroot, configuration }: Linkable): Promise<void> {
  const description = join(sysroot, "usr/lib/x86_64-linux-gnu/pkgconfig/x265.pc");
  // It names the shared library of the compiler, which a static program cannot link.
  writeFileSync(description, readFileSync(description, "utf8").replaceAll(/ -lgcc_s\b/g, ""));
  await run("./configure", configuration, { cwd: source, env: environment(sysroot) });
  writeVersion(source, version);
}

/** Takes the place of libnuma in `sysroot`. */
export async function addNumaStub(sysroot: string): Promise<void> {
  const options = { cwd: join(sysroot, "usr/lib/x86_64-linux-gnu") };
  writeFileSync(join(options.cwd, "numa.c"), NUMA_STUB);
  await run("gcc", ["-O1", "-w", "-c", "numa.c"], options);
  await run("ar", ["rcs", "libnuma.a", "numa.o"], options);
}

/** Writes the program `vodbox` into the source: ffmpeg and ffprobe, linked from the archives. */
export async function compileAndLink(options: Linkable): Promise<void> {
  const { source, version, sysroot, configuration, withSvtAv1 } = options;
  const env = environment(sysroot);
  await addNumaStub(sysroot);
  if (withSvtAv1 || !(await writeConfigured(source, version, configuration))) await configure(options);
  addMultiCall(source);
  writeFileSync(join(source, "stub.c"), TLS_STUB);
  const programs = ["fftools/vodbox", ...BOTH_PROGRAMS, ...FFMPEG, ...FFPROBE];
  await compileAll(source, env, [
    ...FAST.map((name) => ({ name, flags: ["-O3", "-DHAVE_AV_CONFIG_H"] })),
    ...programs.map((name) => ({ name, flags: ["-O1"] })),
    ...SIMPLE.map((name) => ({ name, flags: ["-O1", "-DHAVE_AV_CONFIG_H"] })),
    { name: "stub", flags: ["-O1"] },
  ]);
  const only = (program: string, names: string[]) => exportOnlyMain(source, program, [...names, ...BOTH_PROGRAMS]);
  const parts = ["fftools/vodbox.o", await only("ffmpeg", FFMPEG), await only("ffprobe", FFPROBE)];
  const objects = [...parts, ...[...FAST, ...SIMPLE, "stub"].map((name) => `${name}.o`)];
  const group = ["-Wl,--start-group", ...ARCHIVES, ...(withSvtAv1 ? ["-lSvtAv1Enc"] : []), "-Wl,--end-group"];
  await run("gcc", [...LINK, "-o", "vodbox_g", ...objects, ...group, ...SYSTEM], { cwd: source, env });
  await requireNoNetwork(source);
  await run("strip", ["-o", "vodbox", "vodbox_g"], { cwd: source });
}

type Unit = { name: string; flags: string[] };

/** As many at a time as there are processors, in this order. */
async function compileAll(source: string, env: NodeJS.ProcessEnv, units: Unit[]): Promise<void> {
  const progress = bar("ffmpeg: compiling", units.length);
  const waiting = units.values();
  const compile = async () => {
    for (const { name, flags } of waiting) {
      await run("gcc", [...FLAGS, ...flags, "-c", `${name}.c`, "-o", `${name}.o`], { cwd: source, env });
      progress.advance();
    }
  };
  try {
    await Promise.all(Array.from({ length: availableParallelism() }, compile));
  } finally {
    progress.end();
  }
}

/** As in the makefile of multi-call.ts; returns the name of the object. */
async function exportOnlyMain(source: string, program: string, names: string[]): Promise<string> {
  const result = `fftools/${program}-only.o`;
  const options = { cwd: source };
  await run("gcc", ["-r", "-nostdlib", "-o", result, ...names.map((name) => `${name}.o`)], options);
  await run("objcopy", ["--redefine-sym", `main=${program}_main`, result], options);
  await run("objcopy", [`--keep-global-symbol=${program}_main`, result], options);
  return result;
}

/** The archives contain network protocols: none of them may have been linked. */
async function requireNoNetwork(source: string): Promise<void> {
  const symbols = await run("nm", ["vodbox_g"], { cwd: source });
  const linked = NETWORK_FUNCTIONS.filter((name) => new RegExp(` [TW] ${name}$`, "m").test(symbols));
  if (linked.length > 0) throw new Error(`the linked program contains network functions: ${linked.join(", ")}`);
}
