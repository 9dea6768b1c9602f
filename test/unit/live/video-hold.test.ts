import { expect, test, vi } from "vitest";
import { VideoHold } from "#live/converted-audio/video-hold.ts";
import { atEnd } from "#test/support/folder.ts";

/** Video of 30 s with a frame every 100 ms, while the encoder of audio is `behindMs` behind. Returns the frames that were ahead of the audio. */
function playedEarly(behindMs: (ms: number) => number): number[] {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  atEnd(() => vi.useRealTimers());
  const hold = new VideoHold((error) => {
    throw error;
  });
  let encoded = 0;
  const early: number[] = [];
  for (let ms = 0; ms <= 30_000; ms += 100) {
    hold.audioPushed(ms);
    if (ms - behindMs(ms) > encoded) {
      encoded = ms - behindMs(ms);
      hold.audioEncoded(encoded);
    }
    hold.add({ ms, bytes: 1, emit: () => (ms > encoded + 1000 ? early.push(ms) : 0) });
    vi.advanceTimersByTime(100);
  }
  hold.close();
  return early;
}

test("video waits for audio that is encoded late", () => {
  expect(playedEarly(() => 0)).toEqual([]);
  expect(playedEarly(() => 2000)).toEqual([]);
});

test("video does not wait for an encoder that has stopped, and waits again when it is 2 s behind", () => {
  const early = playedEarly((ms) => (ms < 5000 ? 0 : ms < 15_000 ? ms - 5000 : 2000));
  // What waits longer than 5 s is played without audio.
  expect(early.length).toBeGreaterThan(30);
  expect(early.at(-1)).toBeLessThanOrEqual(15_000);
});
