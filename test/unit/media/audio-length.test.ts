import { expect, test } from "vitest";
import { encodedSamples } from "#media/audio-filters.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { planEncode } from "#media/plan.ts";
import type { Probe } from "#media/probe.ts";

const track = { index: 0, codec: "pcm_s16le", channels: 2, startSeconds: 0, durationSeconds: 6, language: null };
const probe = {
  format: "wav",
  video: null,
  audio: [track],
  skipped: [],
  jumps: null,
  durationSeconds: 6,
  startSeconds: 0,
};
const filtersFor = (length_seconds: number | null) => {
  const audio = { ...encodingSpec.audio, length_seconds };
  const spec = { ...encodingSpec, video: { ...encodingSpec.video, enabled: false }, audio };
  const [one] = planEncode(probe as unknown as Probe, spec).audio;
  return one && encodedSamples(one, spec).slice(2);
};

test("a specification with a length pads and cuts each track to it", () => {
  expect(filtersFor(10)).toEqual(["apad=whole_len=480000", "atrim=end=10.000"]);
  expect(filtersFor(null)).toEqual([]);
});
