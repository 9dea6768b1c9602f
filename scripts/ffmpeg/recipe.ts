import { createHash } from "node:crypto";
import type { Arch } from "../build/base.ts";
import { componentsOf, type Stage, words } from "./components.ts";
import { MULTI_CALL } from "./multi-call.ts";

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

/** Arguments of `./configure` that define what the programs of a stage can do. */
const features = (stage: Stage): string[] => [
  ...words("--disable-everything --disable-autodetect --disable-iconv --disable-network --disable-doc --disable-debug"),
  ...words("--disable-ffplay --disable-shared --enable-static --enable-pthreads --enable-gpl"),
  ...words("--enable-zlib --enable-libx264 --enable-libvpx --enable-libopus --enable-libwebp --enable-libzimg"),
  ...words("--enable-libx265"),
  stage === "linked" ? "--enable-libaom" : "--enable-libdav1d",
  ...(stage === "linked" ? [] : ["--enable-libsvtav1"]),
  "--pkg-config-flags=--static",
  // zimg's static archive needs libm without declaring it.
  "--extra-libs=-lm",
  ...Object.entries(componentsOf(stage)).map(([kind, names]) => `--enable-${kind}=${names.join(",")}`),
];

/** Linker flags of all stages: addresses that are resolved once are read-only, and so are stacks for instructions. */
export const HARDENED_LINK = "-Wl,-z,relro,-z,now,-z,noexecstack";
export const HARDENED_CODE = "-fstack-protector-strong -D_FORTIFY_SOURCE=2";

/** Arguments of `./configure`. `revision` is the distribution's suffix, so that `-version` names the patched source. */
export const configureArguments = (revision: string, stage: Stage = "complete"): string[] => [
  `--extra-version=${revision}`,
  ...features(stage),
  ...(stage === "complete"
    ? [
        "--enable-pic",
        // Position-independent although static: a program that parses untrusted bytes should not have fixed addresses.
        `--extra-cflags=-fPIE ${HARDENED_CODE}`,
        `--extra-ldflags=${HARDENED_LINK}`,
        "--extra-ldexeflags=-static-pie",
      ]
    : // The assembly in the distribution's archives is not position-independent.
      [
        "--disable-pic",
        `--extra-cflags=-fno-pie ${HARDENED_CODE}`,
        `--extra-ldflags=${HARDENED_LINK}`,
        "--extra-ldexeflags=-static",
      ]),
];

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

/** The name of the archive with x265's encoder of 10 bit, which the one of 8 bit calls. */
export const X265_10BIT_ARCHIVE = "x265-10bit";

/**
 * The bit depth of x265 is fixed at compilation: it is compiled twice, and the library of 8 bit is linked with that of
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
  "COPYING.aom": "libaom, in FFmpeg",
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

/** A short name of a recipe, which is any value that JSON can express. */
export const hashOf = (recipe: unknown) =>
  createHash("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 12);

/** The target `arch`, built on this machine. */
export function targetFor(arch: Arch): Target {
  const withX264 = arch === "arm64";
  const cpu = { x64: "x86_64", arm64: "aarch64" }[arch];
  const cross = arch === process.arch ? null : { prefix: `${cpu}-linux-gnu`, cpu };
  // Packages have a hyphen where the compiler's name has an underscore.
  const packages = cross ? crossPackages(cross.prefix.replaceAll("_", "-")) : nativePackages;
  const more = cross ? [linkedPackages, crossArguments(cross, "SYSROOT"), crossFile(cross)] : [];
  const target = { arch, cross, packages, withX264 };
  const libraries = Object.keys(LIBRARY_RECIPES)
    .filter((name) => withX264 || name !== "x264")
    .map((name) => libraryHash(name, target));
  const recipeHash = hashOf([configureArguments(""), MULTI_CALL, libraries, packages, ...more]);
  return { ...target, recipeHash };
}

/** What a compiled library depends on, by source package. */
const LIBRARY_RECIPES: Record<string, (target: Omit<Target, "recipeHash">) => unknown> = {
  dav1d: () => dav1dArguments(""),
  x264: ({ cross }) => x264Arguments("", cross),
  x265: (target) => [x265Arguments("", target, 8), x265Arguments("", target, 10)],
  "svt-av1": (target) => svtAv1Arguments("", { ...target, headers: HIDDEN_HEADER.content }),
};

/** Changes whenever the archive of a compiled library would, for a version of its source. */
export const libraryHash = (name: string, target: Omit<Target, "recipeHash">): string =>
  hashOf([LIBRARY_RECIPES[name]?.(target), target.cross && crossFile(target.cross), target.arch]);

type Cross = NonNullable<Target["cross"]>;

/** Arguments of `./configure` for another processor; they follow `configureArguments`, and repeat what they replace. */
export function crossArguments({ prefix, cpu }: Cross, sysroot: string): string[] {
  const headers = `${sysroot}/usr/include`;
  const libraries = `${sysroot}/usr/lib/${prefix}`;
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
