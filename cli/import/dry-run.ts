import { line, plain } from "../print.ts";
import { amount, duration } from "../units.ts";
import type { Existing } from "./existing.ts";
import type { Ledger } from "./ledger.ts";
import { type Action, actionFor, forEachBounded, videosOf } from "./plan.ts";
import { ItemError, type Listed, type Media, type Source } from "./source.ts";

const AT_ONCE = 8;

type Planned = {
  source_id: string;
  title: string;
  action: Action;
  from: Media["kind"] | null;
  bytes: number | null;
  seconds: number | null;
  captions: number;
  chapters: number;
  notes: string[];
  /** Why it cannot be imported, or not completely. */
  problems: string[];
};

/**
 * Prints what an import would do, video by video as they are listed, with totals; nothing is changed. Returns whether every
 * video can be imported.
 */
export async function dryRun(
  context: { source: Source; ledger: Ledger; existing: Map<string, Existing> },
  { json, limit }: { json: boolean; limit: number },
): Promise<boolean> {
  const totals = {
    videos: 0,
    to_import: 0,
    bytes: 0,
    unknown_bytes: 0,
    seconds: 0,
    unknown_seconds: 0,
    with_problems: 0,
  };
  const duplicates: string[] = [];
  let error: string | null = null;
  if (json) process.stdout.write('{"items":[');
  const videos = videosOf(context.source, (id) => duplicates.push(id));
  await forEachBounded(limited(videos, limit), AT_ONCE, async (listed) => {
    const planned = await plannedOf(context, listed);
    totals.videos++;
    if (planned.problems.length > 0) totals.with_problems++;
    if (planned.action === "import" || planned.action === "resume") {
      totals.to_import++;
      totals.bytes += planned.bytes ?? 0;
      totals.seconds += planned.seconds ?? 0;
      if (planned.bytes === null) totals.unknown_bytes++;
      if (planned.seconds === null) totals.unknown_seconds++;
    }
    if (json) process.stdout.write(`${totals.videos > 1 ? "," : ""}\n${JSON.stringify(planned)}`);
    else line(shown(planned));
  }).catch((cause: unknown) => {
    if (!(cause instanceof ItemError)) throw cause;
    error = cause.message;
  });
  if (json) process.stdout.write(`\n],${JSON.stringify({ ...totals, duplicates, error }).slice(1)}\n`);
  else {
    const unknown = totals.unknown_bytes > 0 ? ` and ${totals.unknown_bytes} files of unknown size` : "";
    const minutes = (totals.seconds / 60).toFixed(1);
    const unmeasured = totals.unknown_seconds > 0 ? ` and ${totals.unknown_seconds} videos of unknown length` : "";
    const size = `${amount(totals.bytes)}${unknown}, ${minutes} minutes${unmeasured}`;
    line(`${totals.to_import} of ${totals.videos} videos to import: ${size}.`);
    if (duplicates.length > 0) line(`${duplicates.length} videos were listed more than once.`);
    if (error !== null) line(`The list is incomplete: ${plain(error)}.`);
  }
  return error === null && totals.with_problems === 0;
}

async function plannedOf(
  context: { source: Source; ledger: Ledger; existing: Map<string, Existing> },
  listed: Listed,
): Promise<Planned> {
  const action = actionFor(listed, context);
  const { id: source_id, title, bytes, seconds } = listed;
  const none = { captions: 0, chapters: 0, notes: [], problems: [] };
  const planned: Planned = { source_id, title, action, from: null, bytes, seconds, ...none };
  if (action === "done" || action === "verify") return planned;
  if (action === "changed") return { ...planned, problems: ["another file has been imported under this id"] };
  try {
    const item = await context.source.load(listed, { isDryRun: true });
    const { media, captions, chapters, notes, problems } = item;
    const known = media.kind === "hls" ? null : media.bytes;
    return {
      ...planned,
      title: item.title,
      from: media.kind,
      bytes: known ?? bytes,
      seconds: item.seconds ?? seconds,
      captions: captions.length,
      chapters: chapters.length,
      notes,
      problems,
    };
  } catch (error) {
    if (!(error instanceof ItemError)) throw error;
    return { ...planned, problems: [error.message] };
  }
}

function shown({ source_id, title, action, bytes, seconds, captions, chapters, notes, problems }: Planned): string {
  const parts = [
    action,
    bytes === null ? "size unknown" : amount(bytes),
    seconds === null ? "duration unknown" : duration(seconds),
    ...(captions > 0 ? [`${captions} captions`] : []),
    ...(chapters > 0 ? [`${chapters} chapters`] : []),
    ...notes,
    ...problems.map((problem) => `PROBLEM: ${problem}`),
  ];
  return plain(`${source_id} (${title}): ${parts.join(", ")}`);
}

/** The first items. */
export async function* limited<T>(items: AsyncIterable<T>, limit: number): AsyncGenerator<T> {
  let left = limit;
  if (left === 0) return;
  for await (const item of items) {
    yield item;
    if (--left <= 0) return;
  }
}
