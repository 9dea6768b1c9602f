import { run, type SourceRun } from "./ffmpeg.ts";

export type ComponentKind = "encoders" | "decoders" | "demuxers" | "muxers" | "filters";

/** The columns of each list: flags, then the name. */
const LISTED: Record<ComponentKind, RegExp> = {
  encoders: /^ [A-Z.]{6} (\S+)/gm,
  decoders: /^ [A-Z.]{6} (\S+)/gm,
  demuxers: /^ D[E d]{0,3} +(\S+)/gm,
  muxers: /^ [D ]E[ d]? +(\S+)/gm,
  filters: /^ [A-Z.]{2,3} (\S+) +\S+->\S+/gm,
};

export const LIST_MS = 20_000;

/** The names of all components of a kind that this ffmpeg was compiled with. Throws MediaError. */
export async function componentsOf(
  ffmpeg: string,
  kind: ComponentKind,
  common: SourceRun,
): Promise<ReadonlySet<string>> {
  const args = ["-hide_banner", "-nostdin", `-${kind}`];
  const list = (await run(ffmpeg, { ...common, args, timeLimitMs: LIST_MS })).toString();
  // One line may contain several names, separated by commas.
  return new Set([...list.matchAll(LISTED[kind])].flatMap(([, names = ""]) => [names, ...names.split(",")]));
}

/** ffmpeg's names of the pixel formats that one of its encoders takes; none for an unknown encoder. Throws MediaError. */
export async function pixelFormatsOf(ffmpeg: string, encoder: string, common: SourceRun): Promise<ReadonlySet<string>> {
  const args = ["-hide_banner", "-nostdin", "-h", `encoder=${encoder}`];
  const help = (await run(ffmpeg, { ...common, args, timeLimitMs: LIST_MS })).toString();
  const [, names = ""] = /^ +Supported pixel formats: (.+)$/m.exec(help) ?? [];
  return new Set(names.trim().split(" "));
}

const decodable = new Map<string, Promise<ReadonlySet<string>>>();

/**
 * The codecs that this ffmpeg decodes, by ffprobe's names: a codec has another name than some of its decoders. Listed once for
 * each program. Throws MediaError.
 */
export function decodableCodecs(ffmpeg: string): Promise<ReadonlySet<string>> {
  const known = decodable.get(ffmpeg);
  if (known) return known;
  const listed = run(ffmpeg, { args: ["-hide_banner", "-nostdin", "-codecs"], timeLimitMs: LIST_MS }).then(
    (list) => new Set([...list.toString().matchAll(/^ D[A-Z.]{5} (\S+)/gm)].map(([, name = ""]) => name)),
  );
  decodable.set(ffmpeg, listed);
  listed.catch(() => decodable.delete(ffmpeg));
  return listed;
}
