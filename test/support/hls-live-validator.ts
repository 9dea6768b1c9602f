import { type ParsedPlaylist, type ParsedSegment, parseLivePlaylist } from "./hls-live-parser.ts";

/** A rule of draft-pantos-hls-rfc8216bis that a playlist breaks. */
export type LiveFault = { rule: string; message: string };

/** What the validator knows besides the playlist. */
export type Observation = {
  /** The current playlists of the other tracks, by the URI in their rendition report. */
  others?: Map<string, string>;
  /** The full playlist of the same state, when the one observed is a delta update. */
  full?: string;
};

const PART_MINIMUM = 0.85;
const EPSILON = 2e-5;
const DATE_TOLERANCE_MS = 100;

/** Checks the playlists of one track in the order in which a client receives them. */
export class LiveValidator {
  #previous: ParsedPlaylist | null = null;
  #faults: LiveFault[] = [];

  /** Returns the faults of this playlist, alone and as a successor of the previous one. */
  see(text: string, { others, full }: Observation = {}): LiveFault[] {
    this.#faults = [];
    const received = parseLivePlaylist(text);
    const playlist = this.#merged(received);
    this.#checkHeader(playlist, received);
    this.#checkSegments(playlist);
    this.#checkParts(playlist);
    this.#checkDates(playlist);
    if (others) this.#checkReports(playlist, others);
    if (full !== undefined) {
      this.#require(isEqual(playlist, parseLivePlaylist(full)), "delta", "A delta update differs from the playlist.");
    }
    if (this.#previous) this.#checkSuccession(this.#previous, playlist);
    this.#previous = playlist;
    return this.#faults;
  }

  #require(isTrue: boolean, rule: string, message: string): void {
    if (!isTrue) this.#faults.push({ rule, message });
  }

  /** 6.3.7: the client takes skipped segments from its last playlist. */
  #merged(received: ParsedPlaylist): ParsedPlaylist {
    if (received.skipped === 0) return received;
    const known = new Map(this.#previous?.segments.map((segment) => [segment.number, segment]));
    const skipped = Array.from({ length: received.skipped }, (_, index) => known.get(received.sequence + index));
    // They are old: their parts have left the playlist.
    const found = skipped.flatMap((segment) => (segment ? [{ ...segment, parts: [] }] : []));
    this.#require(
      found.length === received.skipped,
      "skip-unknown",
      "It skips segments that the client does not have.",
    );
    const until = Number(received.control.get("CAN-SKIP-UNTIL") ?? Number.NaN);
    this.#require(durationOf(received) >= until - EPSILON, "skip-boundary", "It skips segments within CAN-SKIP-UNTIL.");
    return { ...received, skipped: 0, map: this.#previous?.map ?? null, segments: [...found, ...received.segments] };
  }

  #checkHeader({ control, partTarget, target, version, map }: ParsedPlaylist, { skipped }: ParsedPlaylist): void {
    const of = (name: string) => (control.has(name) ? Number(control.get(name)) : null);
    const holdBack = of("HOLD-BACK");
    const partHoldBack = of("PART-HOLD-BACK");
    const skipUntil = of("CAN-SKIP-UNTIL");
    const rule = "server-control";
    this.#require(holdBack === null || holdBack >= 3 * target, rule, "HOLD-BACK is under 3 target durations.");
    this.#require(skipUntil === null || skipUntil >= 6 * target, rule, "CAN-SKIP-UNTIL is under 6 target durations.");
    if (partTarget !== null) {
      this.#require(control.get("CAN-BLOCK-RELOAD") === "YES", rule, "Parts without CAN-BLOCK-RELOAD.");
      this.#require((partHoldBack ?? 0) >= 3 * partTarget - EPSILON, rule, "PART-HOLD-BACK is under 3 part targets.");
    }
    this.#require(version >= (skipped > 0 ? 9 : 6), "version", `Version ${version} is too low.`);
    this.#require(map !== null, "map", "It has no EXT-X-MAP.");
  }

  #checkSegments({ segments, target }: ParsedPlaylist): void {
    for (const { complete, number } of segments)
      this.#require(
        !complete || Math.round(complete.durationSeconds) <= target,
        "target-duration",
        `Segment ${number} is longer than TARGETDURATION.`,
      );
  }

  #checkParts(playlist: ParsedPlaylist): void {
    const { segments, partTarget, target, hint, isEnded } = playlist;
    this.#require(!(isEnded && hint !== null), "ended", "An ended playlist has a preload hint.");
    let age = 0;
    for (const { number, parts, complete } of segments.toReversed()) {
      const sum = parts.reduce((total, { durationSeconds }) => total + durationSeconds, 0);
      if (parts.length > 0) {
        this.#require(partTarget !== null, "part-inf", "Parts without EXT-X-PART-INF.");
        this.#require(age <= 3 * target + EPSILON, "part-age", `The parts of segment ${number} are too old.`);
        if (complete)
          this.#require(
            Math.abs(sum - complete.durationSeconds) <= EPSILON * (parts.length + 1),
            "part-sum",
            `The parts of segment ${number} last ${sum} s, not ${complete.durationSeconds} s.`,
          );
      }
      parts.forEach(({ durationSeconds }, index) => {
        const most = partTarget ?? 0;
        this.#require(durationSeconds <= most + EPSILON, "part-target", `Part ${number}.${index} is too long.`);
        // The last part that is listed may be the last of its segment.
        const isLast = index === parts.length - 1;
        this.#require(
          isLast || durationSeconds >= most * PART_MINIMUM - EPSILON,
          "part-minimum",
          `Part ${number}.${index} is too short.`,
        );
      });
      age += complete?.durationSeconds ?? sum;
    }
  }

  #checkDates({ segments }: ParsedPlaylist): void {
    segments.forEach((segment, index) => {
      const before = segments[index - 1];
      if (!before?.complete || before.date === null || segment.date === null) return;
      const step = segment.date - before.date - before.complete.durationSeconds * 1000;
      const isContinuous = segment.isDiscontinuous ? step >= -DATE_TOLERANCE_MS : Math.abs(step) <= DATE_TOLERANCE_MS;
      this.#require(isContinuous, "date", `The date of segment ${segment.number} is off by ${step} ms.`);
    });
    this.#require(segments.length === 0 || segments[0]?.date !== null, "date", "The first segment has no date.");
  }

  /** 4.4.5.4: a report for each other track, with its last segment and part. */
  #checkReports({ reports, isEnded, partTarget }: ParsedPlaylist, others: Map<string, string>): void {
    if (isEnded || partTarget === null) return;
    for (const [uri, text] of others) {
      const report = reports.find((each) => each.uri === uri);
      const last = parseLivePlaylist(text).segments.at(-1);
      const lastPart = last && last.parts.length > 0 ? last.parts.length - 1 : null;
      const isRight = report !== undefined && report.lastMsn === last?.number && report.lastPart === lastPart;
      this.#require(isRight, "rendition-report", `The report of ${uri} is missing or wrong.`);
    }
  }

  /** 6.2.1 and 6.2.2: what may change between two playlists. */
  #checkSuccession(before: ParsedPlaylist, after: ParsedPlaylist): void {
    const isFixed = before.target === after.target && before.partTarget === after.partTarget;
    this.#require(isFixed, "target-changed", "TARGETDURATION or PART-TARGET has changed.");
    this.#require(after.sequence >= before.sequence, "sequence", "EXT-X-MEDIA-SEQUENCE has decreased.");
    if (before.isEnded) this.#require(isEqual(before, after), "ended", "The playlist has changed after its end.");
    const removed = before.segments.filter(({ number }) => number < after.sequence);
    const discontinuities = removed.filter(({ isDiscontinuous }) => isDiscontinuous).length;
    this.#require(
      after.discontinuitySequence === before.discontinuitySequence + discontinuities,
      "discontinuity-sequence",
      "EXT-X-DISCONTINUITY-SEQUENCE does not count the removed discontinuities.",
    );
    this.#require(
      removed.length === 0 || durationOf(after) >= 3 * after.target - EPSILON,
      "removed-early",
      "Segments were removed from a playlist of under 3 target durations.",
    );
    const now = new Map(after.segments.map((segment) => [segment.number, segment]));
    for (const segment of before.segments)
      if (segment.number >= after.sequence) this.#checkSame(segment, now.get(segment.number));
    this.#checkFollowing(before, after);
  }

  #checkSame(before: ParsedSegment, after: ParsedSegment | undefined): void {
    const { number, parts, complete } = before;
    if (!after) return this.#require(false, "segment-lost", `Segment ${number} has left the end.`);
    const isSame =
      before.isDiscontinuous === after.isDiscontinuous &&
      before.date === after.date &&
      (complete === null || isEqual(complete, after.complete));
    this.#require(isSame, "segment-changed", `Segment ${number} has changed.`);
    const known = after.parts.slice(0, parts.length);
    // Parts leave together, and only from complete segments.
    const isKept = isEqual(parts, known) || (after.complete !== null && after.parts.length === 0);
    this.#require(isKept, "part-changed", `The parts of segment ${number} have changed.`);
    const isFull = complete === null || after.parts.length <= parts.length;
    this.#require(isFull, "part-changed", `Segment ${number} was complete and has more parts.`);
  }

  #checkFollowing(before: ParsedPlaylist, after: ParsedPlaylist): void {
    const last = before.segments.at(-1);
    const next = after.segments.find(({ number }) => number === (last?.number ?? -1) + 1);
    if (before.hasTrailingDiscontinuity && last?.complete)
      this.#require(
        next ? next.isDiscontinuous : after.hasTrailingDiscontinuity,
        "discontinuity-lost",
        "A discontinuity that was announced is missing.",
      );
    if (before.hint === null || !last) return;
    const same = after.segments.find(({ number }) => number === last.number);
    // Its parts have left the playlist since then, the one that was announced with them.
    if (!last.complete && same?.complete && same.parts.length === 0) return;
    const continued = last.complete ? undefined : same?.parts[last.parts.length];
    const first = continued ?? next?.parts[0];
    if (first && !next?.isDiscontinuous)
      this.#require(first.uri === before.hint, "preload-hint", `${first.uri} follows the hint of ${before.hint}.`);
  }
}

const durationOf = ({ segments }: ParsedPlaylist) =>
  segments.reduce((sum, { complete }) => sum + (complete?.durationSeconds ?? 0), 0);

const isEqual = (one: unknown, other: unknown) => plain(one) === plain(other);
const plain = (value: unknown) =>
  JSON.stringify(value, (_, each) => (each instanceof Map ? [...each].sort(([a], [b]) => (a < b ? -1 : 1)) : each));
