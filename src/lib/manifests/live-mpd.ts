import {
  adaptationSets,
  attribute,
  ISOFF_LIVE_PROFILE,
  MPD_NAMESPACE,
  type MpdSet,
  type MpdTemplates,
  xsDuration,
} from "./mpd.ts";

/** Writes the DASH manifest of a live stream (ISO/IEC 23009-1, 5.4; DASH-IF Interoperability Points 4.3, section 4). */

export type LivePeriod = {
  /** The same in each manifest that has the period. */
  id: string;
  /** Since the start of the stream, in time of day. */
  startSeconds: number;
  sets: readonly MpdSet[];
};

export type LiveMpdOptions = MpdTemplates & {
  /** Start of the stream, in ms since the epoch. */
  startedAtMs: number;
  /** When the manifest became valid, in ms since the epoch: later than the manifest before it. */
  publishedAtMs: number;
  periods: readonly LivePeriod[];
  /** End of the last period, as their starts; null while the stream runs. */
  endSeconds: number | null;
  maxSegmentSeconds: number;
  minBufferSeconds: number;
  /** How often players read the manifest. */
  updateSeconds: number;
  /** How far behind the encoder players play. */
  delaySeconds: number;
  /** How far they can seek back. */
  dvrSeconds: number;
  /** File name of the time of day as xs:dateTime, in the directory of the renditions. */
  timeName: string;
};

type Elsewhere = { base: string; location: string };

/** A rendered manifest. */
export class LiveMpd {
  readonly #head: string;
  readonly #rest: string;
  #text: string | undefined;
  #elsewhere: (Elsewhere & { text: string }) | undefined;

  constructor(options: LiveMpdOptions) {
    this.#head = headOf(options);
    this.#rest = restOf(options);
  }

  /** As it is read from the directory of the renditions: one text for all viewers. */
  text(): string {
    this.#text ??= this.#head + this.#rest;
    return this.#text;
  }

  /**
   * As it is read from elsewhere. `base` is the absolute path of the directory of the renditions, and `location` the URL of
   * the manifest there, where players read the updates (5.3.1.2). Relative references would depend on the player: some
   * resolve BaseURL against Location. The same object for all viewers of a public stream.
   */
  at({ base, location }: Elsewhere): { text: string } {
    if (this.#elsewhere?.base !== base || this.#elsewhere.location !== location) {
      const elements = [`  <BaseURL>${attribute(base)}</BaseURL>`, `  <Location>${attribute(location)}</Location>`];
      this.#elsewhere = { base, location, text: `${this.#head}${elements.join("\n")}\n${this.#rest}` };
    }
    return this.#elsewhere;
  }
}

/**
 * When a stream ends, its last manifest is static (DASH-IF Interoperability Points 4.3, 4.6.4): players read no more updates,
 * and play what there is to its end.
 */
function headOf(options: LiveMpdOptions): string {
  const { startedAtMs, publishedAtMs, endSeconds, maxSegmentSeconds, minBufferSeconds } = options;
  const attributes = {
    xmlns: MPD_NAMESPACE,
    profiles: ISOFF_LIVE_PROFILE,
    type: endSeconds === null ? "dynamic" : "static",
    availabilityStartTime: dateTime(startedAtMs),
    publishTime: dateTime(publishedAtMs),
    ...(endSeconds === null
      ? {
          minimumUpdatePeriod: xsDuration(options.updateSeconds),
          timeShiftBufferDepth: xsDuration(options.dvrSeconds),
          suggestedPresentationDelay: xsDuration(options.delaySeconds),
        }
      : { mediaPresentationDuration: xsDuration(endSeconds) }),
    maxSegmentDuration: xsDuration(maxSegmentSeconds),
    minBufferTime: xsDuration(minBufferSeconds),
  };
  const written = Object.entries(attributes).map(([name, value]) => `${name}="${value}"`);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<MPD ${written.join(" ")}>\n`;
}

/**
 * A period has no duration, so it lasts until the next one: while the publisher was away it has no segments. Durations that
 * leave gaps between periods are allowed too, but dash.js 5.2 takes their sum for the duration of the presentation, and then
 * never reaches its end.
 */
function restOf({ periods, endSeconds, timeName, ...templates }: LiveMpdOptions): string {
  const elements = periods.map(({ id, startSeconds, sets }) =>
    [
      `  <Period id="${id}" start="${xsDuration(startSeconds)}">`,
      ...adaptationSets(sets, templates),
      "  </Period>",
    ].join("\n"),
  );
  // 5.8.4.11. The time in the manifest itself would be as old as the copy in a cache.
  const clock = `  <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-xsdate:2014" value="${attribute(timeName)}"/>`;
  return [...elements, ...(endSeconds === null ? [clock] : []), "</MPD>", ""].join("\n");
}

const dateTime = (ms: number) => new Date(ms).toISOString();
