import { execFile } from "node:child_process";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { videoCodecs } from "#lib/codecs";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import { probe } from "#media/probe.ts";
import type { ProfileDefinition } from "#protocol/encoding-profile.ts";
import { binaries } from "#test/support/media/sources.ts";
import { workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";
import { benchClips, joinedSegments, vmafOf } from "./vmaf.ts";

const run = promisify(execFile);
/** The length of each clip, which is repeated if it is shorter: two segments. */
const SECONDS = 8;
const LIBRARY_SECONDS = 600;
const CODECS = Object.keys(videoCodecs) as (keyof typeof videoCodecs)[];

/** One rendition: kbit/s, and VMAF of the largest one of each codec. */
type Rendition = { codec: string; kbits: number; vmaf: number | null };

/**
 * Bytes of a library of ten minutes in which each clip has the same share: with the ladder of `default`, with the rungs of
 * `per_title`, and with HEVC and AV1. What is stored is all renditions; what is delivered is the largest one of a codec.
 */
export async function benchLibrary(): Promise<Result[]> {
  const { definition } = BUILT_IN_PROFILES.default;
  const libraries: { before: Rendition[]; after: Rendition[] }[] = [];
  for (const { name, path } of benchClips()) {
    const work = workFolder();
    try {
      const input = join(work.path, `source${extname(path)}`);
      const repeat = ["-nostdin", "-v", "error", "-stream_loop", "-1", "-i", path, "-t", String(SECONDS)];
      await run("ffmpeg", [...repeat, "-an", "-c", "copy", input]);
      const before = await renditionsOf(input, join(work.path, "before"), definition);
      const after = await renditionsOf(input, join(work.path, "after"), {
        ...definition,
        per_title: true,
        codecs: CODECS,
      });
      libraries.push({ before, after });
      console.error(name, JSON.stringify({ before, after }));
    } finally {
      work.remove();
    }
  }
  const megabytes = (of: (one: (typeof libraries)[number]) => number) => [
    libraries.reduce((sum, one) => sum + of(one), 0) * (LIBRARY_SECONDS / libraries.length / 8 / 1000),
  ];
  const about = (reference: string) => ({ reference, unit: "MB", bar: { atMost: 1 } });
  const largest = (codec: string) => (one: (typeof libraries)[number]) => topOf(one.after, codec).kbits;
  return [
    ...CODECS.map((codec, index) =>
      compare(
        `library, stored: per title, ${CODECS.slice(0, index + 1).join(" and ")}`,
        {
          ours: megabytes(({ after }) =>
            totalOf(after.filter((one) => CODECS.slice(0, index + 1).includes(one.codec as typeof codec))),
          ),
          theirs: megabytes(({ before }) => totalOf(before)),
        },
        { ...about("the ladder"), bar: { atMost: 1 + index } },
      ),
    ),
    ...CODECS.map((codec) =>
      compare(
        `library, delivered: largest rendition, per title, ${codec}`,
        { ours: megabytes(largest(codec)), theirs: megabytes(({ before }) => topOf(before, "h264").kbits) },
        about("of the ladder"),
      ),
    ),
  ];
}

const totalOf = (renditions: readonly Rendition[]) => renditions.reduce((sum, { kbits }) => sum + kbits, 0);

function topOf(renditions: readonly Rendition[], codec: string): Rendition {
  const [top] = renditions.filter((one) => one.codec === codec).toSorted((a, b) => b.kbits - a.kbits);
  if (!top) throw new Error(`The encode has no rendition in ${codec}.`);
  return top;
}

async function renditionsOf(input: string, outDir: string, definition: ProfileDefinition): Promise<Rendition[]> {
  const spec = specOf(definition, null);
  const plain = { ...spec, storyboard: { ...spec.storyboard, enabled: false } };
  const result = await encode({ input, outDir, probe: await probe(input, binaries), spec: plain, binaries });
  const renditions: Rendition[] = [];
  for (const { name, width, bytes } of result.renditions) {
    if (width === null) continue;
    const codec = CODECS.find((one) => name.endsWith(`-${one}`)) ?? spec.video.codec;
    const isTop = !renditions.some((one) => one.codec === codec);
    const vmaf = isTop ? await vmafOf(joinedSegments(join(outDir, name)), input, SECONDS) : null;
    renditions.push({ codec, kbits: Math.round(((bytes ?? 0) * 8) / result.durationSeconds / 1000), vmaf });
  }
  return renditions;
}
