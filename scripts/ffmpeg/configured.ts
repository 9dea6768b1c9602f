import { createHash } from "node:crypto";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../build/run.ts";
import { configureArguments } from "./recipe.ts";

/**
 * ffmpeg's `configure` takes a third of the time of a linked build. What it finds for one is therefore kept in
 * configured.txt, with a hash of all that it depends on; for anything else it is run. `npm run ffmpeg:configured` writes
 * the file, and a test of the full tier compares it with a run.
 */
const kept = join(import.meta.dirname, "configured.txt");

/** What `configure` reads in the source: itself, and the declarations of all components. */
const READ = [
  ...["configure", "libavcodec/allcodecs.c", "libavcodec/bitstream_filters.c", "libavcodec/hwaccels.h"],
  ...["libavcodec/parsers.c", "libavdevice/alldevices.c", "libavfilter/allfilters.c", "libavformat/allformats.c"],
  "libavformat/protocols.c",
];
const LISTS = [
  ...["bsf", "codec", "parser"].map((kind) => `libavcodec/${kind}_list.c`),
  ...["demuxer", "muxer", "protocol"].map((kind) => `libavformat/${kind}_list.c`),
  ...["libavfilter/filter_list.c", "libavdevice/indev_list.c", "libavdevice/outdev_list.c"],
];
/** Definitions that depend on more than the key. */
const OWN_DEFINITIONS = ["FFMPEG_CONFIGURATION", "CC_IDENT", "FFMPEG_VERSION"];
/** Lines about documentation, examples and tools that happen to be installed, and the guards of headers. */
const IRRELEVANT =
  /^(FFMPEG|AVUTIL)_\w+_H$|^HAVE_(VALGRIND_VALGRIND_H|PERL|POD2MAN|MAKEINFO\w*|TEXI2\w*|XMLLINT|\w*GZIP)$|^CONFIG_\w+(PAGES|_EXAMPLE)$/;
const HEADERS = ["config.h", "config_components.h", "libavutil/avconfig.h", "libavutil/ffversion.h"];

export type Configured = {
  /** Macros that are 1. */
  on: string[];
  /** Macros of any other value than 0 and 1, with the value. */
  text: string[];
  /** The components of each list, after its first line. */
  lists: Record<string, { head: string; names: string[] }>;
};

async function keyOf(source: string): Promise<string> {
  const hash = createHash("sha256");
  for (const name of READ) hash.update(readFileSync(join(source, name)));
  hash.update(JSON.stringify(configureArguments("", "linked")));
  hash.update((await run("gcc", ["-dumpversion"])).trim());
  return hash.digest("hex").slice(0, 16);
}

/**
 * Writes the files that `configure` would write for the stage `linked` into `source`, for version `version` and the
 * arguments `configuration`; false, without effect, where the kept ones are of other sources, arguments or compilers.
 */
export async function writeConfigured(source: string, version: string, configuration: string[]): Promise<boolean> {
  const { key, ...configured } = readConfigured();
  if (key !== (await keyOf(source))) return false;
  const own = [
    `FFMPEG_CONFIGURATION ${JSON.stringify(configuration.map(quoted).join(" "))}`,
    `CC_IDENT "gcc ${await run("gcc", ["-dumpversion"])} ${/\(.*\)/.exec(await run("gcc", ["--version"]))?.[0] ?? ""}"`,
  ];
  const on = new Set(configured.on);
  const defined = new Set([...configured.text, ...own].map((line) => line.split(" ", 1)[0]));
  const off = [...macrosOf(source)].filter((name) => !on.has(name) && !defined.has(name));
  const lines = [
    ...[...configured.text, ...own].map((line) => `#define ${line}`),
    ...[...on].map((name) => `#define ${name} 1`),
    ...off.map((name) => `#define ${name} 0`),
  ];
  writeFileSync(join(source, "config.h"), guarded("FFMPEG_CONFIG_H", lines));
  writeFileSync(join(source, "config_components.h"), `#include "config.h"\n`);
  const endianness = ["#define AV_HAVE_BIGENDIAN 0", "#define AV_HAVE_FAST_UNALIGNED 1"];
  writeFileSync(join(source, "libavutil/avconfig.h"), guarded("AVUTIL_AVCONFIG_H", endianness));
  writeVersion(source, version);
  for (const [path, { head, names }] of Object.entries(configured.lists)) {
    const lines = [head, ...names.map((name) => `    &${name},`), "    NULL };", ""];
    writeFileSync(join(source, path), lines.join("\n"));
  }
  return true;
}

/** ffmpeg's Makefile generates it. `version` is that of the source package. */
export function writeVersion(source: string, version: string): void {
  const line = `#define FFMPEG_VERSION "${version.replace(/^\d+:/, "")}"`;
  writeFileSync(join(source, "libavutil/ffversion.h"), guarded("AVUTIL_FFVERSION_H", [line]));
}

const guarded = (name: string, lines: string[]) =>
  [`#ifndef ${name}`, `#define ${name}`, ...lines, "#endif", ""].join("\n");

/** As `configure` quotes its arguments. */
const quoted = (argument: string) =>
  /[^\w\-=.,/:+]/.test(argument) ? argument.replace(/^(--[\w-]+=)?(.*)$/s, "$1'$2'") : argument;

/** The names of all macros that `configure` may define. One that it defines to 0 must be defined in C's own conditions. */
function macrosOf(source: string): Set<string> {
  const files = globSync(["lib*/**/*.{c,h}", "fftools/*.{c,h}", "compat/**/*.{c,h}"], { cwd: source });
  const names = files.flatMap((name) => readFileSync(join(source, name), "latin1").match(NAMES) ?? []);
  // The one is an option of the compiler; the others are guards of headers.
  return new Set(names.filter((name) => name !== "HAVE_AV_CONFIG_H" && !/^CONFIG(_COMPONENTS)?_H$/.test(name)));
}
const NAMES = /\b(?:ARCH|HAVE|CONFIG)_[A-Z0-9_]*[A-Z0-9]\b/g;

/** The macros of `source` after `configure` or `writeConfigured` that programs depend on: their values by name. */
export function macrosIn(source: string): Map<string, string> {
  const lines = HEADERS.flatMap((name) => readFileSync(join(source, name), "utf8").split("\n"));
  const defined = lines.flatMap((line) => {
    const [, name, value = ""] = /^#define (\w+) ?(.*)$/.exec(line) ?? [];
    return name && !IRRELEVANT.test(name) && !OWN_DEFINITIONS.includes(name) ? [[name, value] as const] : [];
  });
  return new Map(defined);
}

/** The lists of components in `source` after `configure` or `writeConfigured`, by file. */
export function listsIn(source: string): Configured["lists"] {
  const read = (path: string) => {
    const text = readFileSync(join(source, path), "utf8");
    return {
      head: text.split("\n", 1)[0] ?? "",
      names: [...text.matchAll(/&(\w+),/g)].map(([, name]) => name as string),
    };
  };
  return Object.fromEntries(LISTS.map((path) => [path, read(path)]));
}

/** Keeps what `configure` has written into `source`. */
export async function keepConfigured(source: string): Promise<void> {
  const macros = [...macrosIn(source)].filter(([name]) => !name.startsWith("AV_HAVE"));
  const on = macros.filter(([, value]) => value === "1").map(([name]) => name);
  const text = macros.filter(([, value]) => !/^[01]$/.test(value)).map(([name, value]) => `${name} ${value}`.trim());
  const lists = Object.entries(listsIn(source)).map(([path, { head, names }]) =>
    section(`${path}: ${head}`, wrapped(names)),
  );
  const about = "# What ffmpeg's configure finds for a linked build, written by `npm run ffmpeg:configured`.";
  const sections = [
    section(`key: ${await keyOf(source)}`, []),
    section("text", text),
    section("on", wrapped(on)),
    ...lists,
  ];
  writeFileSync(kept, [about, ...sections, ""].join("\n"));
}

const section = (title: string, lines: string[]) => [`[${title}]`, ...lines].join("\n");

function wrapped(names: string[]): string[] {
  const lines: string[] = [];
  for (const name of names) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + name.length < 120) lines[lines.length - 1] = `${last} ${name}`;
    else lines.push(name);
  }
  return lines;
}

/** What is kept, with the hash of what it depends on. */
export function readConfigured(): Configured & { key: string } {
  let key = "";
  const configured: Configured = { on: [], text: [], lists: {} };
  let add = (_: string): void => {};
  for (const line of readFileSync(kept, "utf8").split("\n")) {
    const title = /^\[(\w\S*?)(?:: (.*))?\]$/.exec(line);
    if (!title) {
      if (line !== "" && !line.startsWith("#")) add(line);
      continue;
    }
    const [, name = "", rest = ""] = title;
    if (name === "key") key = rest;
    const words = name === "on" ? configured.on : [];
    if (name === "text") add = (each) => configured.text.push(each);
    else add = (each) => words.push(...each.split(" "));
    if (rest && name !== "key") configured.lists[name] = { head: rest, names: words };
  }
  return { key, ...configured };
}
