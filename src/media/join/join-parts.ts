import { codecNameOf } from "#lib/codecs";
import { readSamples } from "../clip/fragments.ts";
import { MediaError } from "../error.ts";
import type { ManifestPlan } from "../manifests/renditions.ts";
import type { Written } from "../package.ts";
import { MAX_DURATION_SECONDS } from "../plan.ts";
import { differenceOf } from "./encoding.ts";
import { JoinImpossible } from "./faults.ts";
import { AudioJoiner } from "./join-audio.ts";
import { type Position, VideoJoiner, type WriteFile } from "./join-video.ts";
import { legible, type Part, type PartRendition } from "./read-part.ts";

type Options = {
  count: number;
  /** The part number `index`, from 0; read when it is needed. */
  part(index: number): Promise<Part>;
  write: WriteFile;
  /** Called after each part. */
  onPart(index: number): Promise<void>;
  signal: AbortSignal;
};
export type Joined = { videos: Written[]; audios: Written[]; plan: ManifestPlan };

/**
 * Writes the init segments and segments of all parts, on one timeline: each part begins where the video of the one before
 * it ends. Throws MediaError `encodings_differ` and `join_not_possible`, and the errors of `part`, `write` and `onPart`.
 */
export async function joinParts({ count, part: partAt, write, onPart, signal }: Options): Promise<Joined> {
  const first = await partAt(0);
  const videos = inOrder(first.renditions.filter(({ kind }) => kind === "video"));
  const audios = first.renditions.filter(({ kind }) => kind === "audio");
  const main = (videos[0] ?? audios[0]) as PartRendition;
  for (const { name, bytes } of first.renditions) await write(name, "init.mp4", bytes);
  const frames = new Map(videos.map(({ name, bytes }) => [name, new VideoJoiner(name, bytes)]));
  const packets = new Map(audios.map((one) => [one.name, new AudioJoiner(one, write)]));
  let from: Position = { time: 0, timescale: main.init.timescale };
  for (let index = 0; index < count; index++) {
    const part = index === 0 ? first : await partAt(index);
    const difference = legible(() => differenceOf(first, part));
    if (difference) throw new MediaError("encodings_differ", difference, false);
    const of = (name: string) => part.renditions.find((one) => one.name === name) as PartRendition;
    const added = await Promise.all(
      videos.map(({ name }) => (frames.get(name) as VideoJoiner).add(part, of(name), from, { write, signal })),
    );
    const { seconds, start } = added[0] ?? (await rangeOfAudio(part, of(main.name)));
    // In other timescales the ends may be rounded.
    const longest = added.reduce((most, one) => Math.max(most, one.seconds), seconds);
    const to = { ...from, time: from.time + Math.ceil(longest * from.timescale - 1e-6) };
    if (to.time / to.timescale > MAX_DURATION_SECONDS)
      throw new JoinImpossible(`they are longer than ${MAX_DURATION_SECONDS / 3600} hours together`);
    for (const { name } of audios)
      await (packets.get(name) as AudioJoiner).add(part, of(name), { from, to, start, isLast: index === count - 1 });
    from = to;
    await onPart(index);
  }
  const plan: ManifestPlan = {
    video: videos.length > 0 ? { rate: rateOf(first.frameRate ?? 0) } : null,
    audio: audios.map(({ name, language, channels, surroundOf }) => ({
      name,
      channels,
      surroundOf,
      track: { language },
    })),
  };
  const finished: Written[] = [];
  for (const joiner of packets.values()) finished.push(await joiner.finish());
  return { videos: [...frames.values()].map(({ written }) => written), audios: finished, plan };
}

/** By codec, in the order of the manifest; largest first. */
const inOrder = (videos: readonly PartRendition[]) =>
  [...Map.groupBy(videos, ({ init }) => codecNameOf(init.codec)).values()].flatMap((all) =>
    all.toSorted((a, b) => b.init.width * b.init.height - a.init.width * a.init.height),
  );

/** Without video: the range in which the packets are presented, without the priming of the encoder. */
async function rangeOfAudio({ read }: Part, rendition: PartRendition): Promise<{ seconds: number; start: number }> {
  const { segments, defaults, init } = rendition;
  const at = async (path: string | undefined) => {
    if (path === undefined) throw new JoinImpossible("a rendition has no segments");
    const data = await read(path);
    return legible(() => readSamples(data, defaults));
  };
  const first = (await at(segments[0]))[0];
  const last = (await at(segments.at(-1))).at(-1);
  if (!first || !last) throw new JoinImpossible("one of their segments is empty");
  const start = Math.max(0, first.cts - init.delay);
  const end = last.cts + last.duration - init.delay;
  if (end <= start) throw new JoinImpossible("the times of their segments are not in order");
  return { seconds: (end - start) / init.timescale, start: start / init.timescale };
}

/** The rational rate that a manifest states with three decimals. */
function rateOf(rate: number): { num: number; den: number } {
  const ntsc = Math.round((rate * 1001) / 1000);
  if (Math.abs((ntsc * 1000) / 1001 - rate) < 0.0006 && Math.abs(rate - Math.round(rate)) > 0.001)
    return { num: ntsc * 1000, den: 1001 };
  const num = Math.round(rate * 1000);
  const den = 1000;
  const divisor = greatest(num, den);
  return { num: num / divisor, den: den / divisor };
}

const greatest = (a: number, b: number): number => (b === 0 ? Math.max(1, a) : greatest(b, a % b));
