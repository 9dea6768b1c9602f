import { expect, test } from "vitest";
import { LiveValidator } from "#test/support/hls-live-validator.ts";
import { Feed, STARTED_AT, timelineOf } from "#test/support/live-feed.ts";
import { fc } from "#test/support/property.ts";

/** One client for each track, which asks for full playlists, and one that asks for delta updates. */
class Clients {
  readonly #feed: Feed;
  readonly #full = new Map<string, LiveValidator>();
  readonly #delta = new Map<string, LiveValidator>();
  readonly faults: string[] = [];

  constructor(feed: Feed) {
    this.#feed = feed;
  }

  /** Every client loads its playlist. `withDelta` says whether those with delta updates do too, or miss this state. */
  load(withDelta: boolean): void {
    for (const track of this.#feed.tracks) {
      if (!this.#feed.timeline.mediaPlaylist(track)) continue;
      const others = new Map<string, string>();
      for (const other of this.#feed.tracks)
        if (other !== track && this.#feed.timeline.mediaPlaylist(other))
          others.set(`../${other}/live.m3u8`, this.#feed.text(other));
      const full = this.#feed.text(track);
      this.#see(this.#full, track, full, { others });
      if (!withDelta) continue;
      // The first playlist of a client is a full one (6.2.5.1).
      const isFirst = !this.#delta.has(track);
      this.#see(this.#delta, track, this.#feed.text(track, !isFirst), { others, full });
    }
  }

  #see(validators: Map<string, LiveValidator>, track: string, text: string, observation: object): void {
    const validator = validators.get(track) ?? new LiveValidator();
    validators.set(track, validator);
    for (const { rule, message } of validator.see(text, observation)) this.faults.push(`${rule}: ${message}\n${text}`);
  }
}

const step = fc.record({
  /** Segments of less than the target come from keyframes that a scene change adds. */
  parts: fc.integer({ min: 0, max: 7 }),
  tail: fc.double({ min: 0.02, max: 0.25, noNaN: true }),
  audioFirst: fc.boolean(),
  event: fc.constantFrom("none", "none", "none", "none", "interrupted", "interrupted in a segment", "late end"),
  gapSeconds: fc.double({ min: 0, max: 30, noNaN: true }),
});

const scenario = fc.record({
  dvrSeconds: fc.integer({ min: 0, max: 40 }),
  first: fc.integer({ min: 0, max: 100_001 }),
  partSeconds: fc.constantFrom(0.25, 0.45, 0.5),
  steps: fc.array(step, { minLength: 10, maxLength: 40 }),
});

test("playlists of random streams obey the rules, and delta updates equal the full playlist", () => {
  fc.assert(
    fc.property(scenario, ({ dvrSeconds, first, partSeconds, steps }) => {
      const feed = new Feed(timelineOf({ dvrSeconds }), ["720p", "480p", "audio"], first);
      const clients = new Clients(feed);
      let now = STARTED_AT;
      feed.segments(1, 4);
      clients.load(true);
      steps.forEach(({ parts, tail, audioFirst, event, gapSeconds }, index) => {
        const tracks = audioFirst ? feed.tracks.toReversed() : feed.tracks;
        const isCut = event === "interrupted in a segment" && parts > 0;
        for (let part = 0; part < parts; part++)
          for (const track of tracks) {
            feed.part(track, partSeconds);
            clients.load(index % 2 === 0);
          }
        if (isCut) feed.timeline.interrupted();
        for (const track of tracks) {
          // The last part is known as such, or its segment ends in the same callback.
          const isLast = event === "late end";
          feed.part(track, isLast ? partSeconds : tail, { isLast });
          if (isLast) clients.load(true);
          feed.segment(track);
          if (!isLast) clients.load(true);
        }
        if (event === "interrupted") feed.timeline.interrupted();
        if (event !== "interrupted" && !isCut) return;
        clients.load(true);
        now += (gapSeconds + 10) * 1000;
        feed.timeline.resumed(now);
        clients.load(true);
      });
      feed.timeline.ended();
      clients.load(true);
      clients.load(true);
      expect(clients.faults).toEqual([]);
    }),
    { seed: 20_261_125, numRuns: 12, endOnFailure: true },
  );
});
