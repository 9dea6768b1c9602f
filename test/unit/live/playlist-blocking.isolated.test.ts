import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { readDirectives } from "#live/playlists/directives.ts";
import { HttpError } from "#src/lib/base/errors.ts";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { Feed, timelineOf } from "#test/support/live-feed.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const directives = (query: string) => readDirectives(new URLSearchParams(query));
/** Its failure is expected, although the test looks at it later. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
const ask = (feed: Feed, query: string, signal?: AbortSignal) =>
  handled(feed.timeline.waitForPlaylist("720p", directives(query), signal));
const askPart = (feed: Feed, segment: number, part: number, signal?: AbortSignal) =>
  handled(feed.timeline.waitForPart("720p", { segment, part }, signal));
const status = (error: unknown) => (error instanceof HttpError ? `${error.status} ${error.code}` : String(error));
/** "pending", or how it has ended. */
async function outcome(promise: Promise<unknown>): Promise<string> {
  const settled = promise.then(() => "done", status);
  await vi.advanceTimersByTimeAsync(0);
  return Promise.race([settled, Promise.resolve("pending")]);
}

describe("directives", () => {
  test.each([
    "_HLS_part=1",
    "_HLS_msn=",
    "_HLS_msn=-1",
    "_HLS_msn=1.5",
    "_HLS_msn=1e3",
    "_HLS_msn=0x10",
    "_HLS_msn=%201",
    "_HLS_msn=9999999999999999",
    "_HLS_msn=1&_HLS_msn=1",
    "_HLS_msn=1&_HLS_part=-1",
    "_HLS_msn=1&_HLS_part=",
    "_HLS_msn=1&_HLS_part=1&_HLS_part=2",
    "_HLS_skip=",
    "_HLS_skip=yes",
    "_HLS_skip=NO",
    "_HLS_skip=YES&_HLS_skip=v2",
  ])("%s is refused", (query) => {
    expect(() => directives(query)).toThrow(HttpError);
    expect(() => directives(query)).toThrow(expect.objectContaining({ status: 400, code: "validation_failed" }));
  });

  test("are optional", () => {
    expect(directives("token=1&_HLS_other=2")).toEqual({ msn: null, part: null, skip: false });
    expect(directives("_HLS_msn=12&_HLS_part=0&_HLS_skip=YES")).toEqual({ msn: 12, part: 0, skip: true });
    expect(directives("_HLS_skip=v2").skip).toBe(true);
  });
});

describe("a blocking request", () => {
  test("for what is there is answered at once", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    feed.part("720p");
    for (const query of ["", "_HLS_msn=0", "_HLS_msn=3", "_HLS_msn=3&_HLS_part=7", "_HLS_msn=4&_HLS_part=0"])
      expect((await ask(feed, query)).text(), query).toBe(feed.text("720p"));
  });

  test("for a part waits for that part", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    const waiting = ask(feed, "_HLS_msn=4&_HLS_part=1");
    feed.part("720p");
    feed.part("audio");
    feed.part("audio");
    expect(await outcome(waiting)).toBe("pending");
    feed.part("720p");
    const { segments } = parseLivePlaylist((await waiting).text());
    expect(segments.at(-1)).toMatchObject({ number: 4, parts: [{}, {}] });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("for a segment waits for its end", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    const waiting = ask(feed, "_HLS_msn=4");
    feed.part("720p");
    expect(await outcome(waiting)).toBe("pending");
    feed.segment("720p");
    expect(await outcome(waiting)).toBe("done");
  });

  test("for a part after the last of its segment waits for the next segment", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    const past = ask(feed, "_HLS_msn=3&_HLS_part=8");
    const open = ask(feed, "_HLS_msn=4&_HLS_part=2");
    feed.part("720p");
    expect(await outcome(past)).toBe("done");
    feed.segment("720p");
    expect(await outcome(open)).toBe("pending");
    feed.part("720p");
    expect(await outcome(open)).toBe("done");
  });

  test("too far ahead is refused", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    feed.part("720p");
    for (const query of ["_HLS_msn=6", "_HLS_msn=999999999999999", "_HLS_msn=4&_HLS_part=7", "_HLS_msn=5&_HLS_part=6"])
      expect(await outcome(ask(feed, query)), query).toBe("400 validation_failed");
    for (const query of ["_HLS_msn=5", "_HLS_msn=4&_HLS_part=6", "_HLS_msn=5&_HLS_part=5"])
      expect(await outcome(ask(feed, query)), query).toBe("pending");
  });

  test("before the first segment waits, and is checked then", async () => {
    const feed = new Feed(timelineOf());
    const first = ask(feed, "");
    const far = ask(feed, "_HLS_msn=50");
    const master = handled(feed.timeline.waitForMultivariantPlaylist());
    feed.part("720p");
    expect(await outcome(first)).toBe("pending");
    feed.segment("720p");
    expect([await outcome(first), await outcome(far)]).toEqual(["done", "400 validation_failed"]);
    expect(await outcome(master)).toBe("pending");
    feed.whole("audio");
    expect(await outcome(master)).toBe("done");
  });

  test("ends after three target durations", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    const waiting = ask(feed, "_HLS_msn=4&_HLS_part=1");
    const ended = outcome(waiting);
    expect(await ended).toBe("pending");
    await vi.advanceTimersByTimeAsync(11_999);
    expect(await outcome(waiting)).toBe("pending");
    await vi.advanceTimersByTimeAsync(1);
    expect(await outcome(waiting)).toBe("503 segment_not_ready");
    expect(feed.timeline.facts().waiters).toBe(0);
  });

  test("that is aborted is forgotten", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    const abort = new AbortController();
    const waiting = ask(feed, "_HLS_msn=4", abort.signal);
    expect(await outcome(waiting)).toBe("pending");
    expect(feed.timeline.facts().waiters).toBe(1);
    abort.abort(new Error("closed"));
    expect(await outcome(waiting)).toBe("Error: closed");
    expect(feed.timeline.facts().waiters).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    expect(await outcome(ask(feed, "_HLS_msn=4", abort.signal))).toBe("Error: closed");
  });

  test("beyond the limit is refused, others are not", async () => {
    const feed = new Feed(timelineOf({ maxWaiters: 2 }));
    feed.segments(3);
    const two = [ask(feed, "_HLS_msn=4"), ask(feed, "_HLS_msn=4")];
    expect(await outcome(ask(feed, "_HLS_msn=4"))).toBe("503 busy");
    expect(await outcome(ask(feed, "_HLS_msn=3"))).toBe("done");
    feed.segments(1);
    expect(await Promise.all(two.map(outcome))).toEqual(["done", "done"]);
  });

  test("of the end of a stream is answered with it", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    const waiting = ask(feed, "_HLS_msn=4&_HLS_part=1");
    expect(await outcome(waiting)).toBe("pending");
    feed.timeline.ended();
    expect(parseLivePlaylist((await waiting).text()).isEnded).toBe(true);
    expect(await outcome(ask(feed, "_HLS_msn=99"))).toBe("done");
  });

  test("for a track without media fails at the end of the stream", async () => {
    const feed = new Feed(timelineOf());
    const waiting = ask(feed, "");
    const master = handled(feed.timeline.waitForMultivariantPlaylist());
    expect(await outcome(waiting)).toBe("pending");
    feed.timeline.ended();
    expect([await outcome(waiting), await outcome(master)]).toEqual(["404 not_found", "404 not_found"]);
    expect(await outcome(feed.timeline.waitForPlaylist("1080p", directives("")))).toBe("404 not_found");
  });

  test("waits for whole segments without low latency", async () => {
    const feed = new Feed(timelineOf({ isLowLatency: false }));
    feed.segments(1);
    const waiting = [ask(feed, "_HLS_msn=2"), ask(feed, "_HLS_msn=2&_HLS_part=0")];
    expect(await outcome(ask(feed, "_HLS_msn=1&_HLS_part=9"))).toBe("done");
    feed.part("720p");
    for (const one of waiting) expect(await outcome(one)).toBe("pending");
    feed.segment("720p");
    for (const one of waiting) expect(await outcome(one)).toBe("done");
    expect(await outcome(ask(feed, "_HLS_msn=99"))).toBe("400 validation_failed");
  });
});

describe("an interruption", () => {
  test("is the answer to requests that wait", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    const waiting = ask(feed, "_HLS_msn=4&_HLS_part=0");
    const hinted = askPart(feed, 4, 0);
    expect([await outcome(waiting), await outcome(hinted)]).toEqual(["pending", "pending"]);
    feed.timeline.interrupted();
    expect(parseLivePlaylist((await waiting).text())).toMatchObject({ hasTrailingDiscontinuity: true, hint: null });
    expect(await outcome(hinted)).toBe("404 not_found");
  });

  test("limits the wait to half a target duration", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    feed.timeline.interrupted();
    const waiting = ask(feed, "_HLS_msn=4&_HLS_part=0");
    await vi.advanceTimersByTimeAsync(1999);
    expect(await outcome(waiting)).toBe("pending");
    await vi.advanceTimersByTimeAsync(1);
    expect((await waiting).text()).toBe(feed.text("720p"));
    expect(feed.timeline.facts().waiters).toBe(0);
    expect(await outcome(ask(feed, "_HLS_msn=9"))).toBe("400 validation_failed");
  });

  test("that is over is the wait for the next part", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    feed.timeline.interrupted();
    const waiting = ask(feed, "_HLS_msn=4&_HLS_part=0");
    feed.timeline.resumed(Date.now());
    expect(await outcome(waiting)).toBe("pending");
    feed.part("720p");
    expect(parseLivePlaylist((await waiting).text()).segments).toHaveLength(4);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test("500 viewers get one playlist, made once", async () => {
  const feed = new Feed(timelineOf({ dvrSeconds: 600 }));
  feed.segments(100);
  const full = Array.from({ length: 500 }, () => ask(feed, "_HLS_msn=101&_HLS_part=0"));
  const delta = Array.from({ length: 500 }, () => ask(feed, "_HLS_msn=101&_HLS_part=0&_HLS_skip=YES"));
  feed.part("720p");
  const playlists = await Promise.all([...full, ...delta]);
  expect(new Set(playlists.slice(0, 500)).size).toBe(1);
  expect(new Set(playlists.slice(500)).size).toBe(1);
  expect(playlists[0]).not.toBe(playlists[500]);
  // The text is a value of the playlist: without tokens it is made once too.
  expect(playlists[0]?.text()).toContain("00101.0.m4s");
});

test("the last part and the end of its segment wake once, with the right hint", async () => {
  const feed = new Feed(timelineOf());
  feed.segments(3);
  const waiting = ask(feed, "_HLS_msn=4&_HLS_part=0");
  feed.part("720p");
  feed.segment("720p");
  expect(parseLivePlaylist((await waiting).text())).toMatchObject({ hint: "00005.0.m4s" });
});

describe("a request for a part", () => {
  test("is answered with its range in the file", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    expect(await askPart(feed, 3, 1)).toEqual({ segment: 3, offset: 50_076, bytes: 50_000 });
  });

  test("that is announced waits for it", async () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    const first = askPart(feed, 4, 0);
    expect(await outcome(first)).toBe("pending");
    feed.part("720p");
    expect(await first).toEqual({ segment: 4, offset: 76, bytes: 50_000 });
    const never = askPart(feed, 4, 1);
    expect(await outcome(never)).toBe("pending");
    feed.segment("720p");
    expect(await outcome(never)).toBe("404 not_found");
  });

  test("that is too old, too far ahead or after the end is refused", async () => {
    const feed = new Feed(timelineOf({ dvrSeconds: 600 }));
    feed.segments(20);
    for (const [segment, part] of [
      [1, 0],
      [20, 8],
      [21, 1],
      [22, 0],
      [1e15, 0],
      [20, 1e9],
    ] as const)
      expect(await outcome(askPart(feed, segment, part)), `${segment}.${part}`).toBe("404 not_found");
    // Parts leave the playlist after three target durations, but clients may have an older one.
    expect(await outcome(askPart(feed, 16, 0))).toBe("done");
    const waiting = askPart(feed, 21, 0);
    expect(await outcome(waiting)).toBe("pending");
    feed.timeline.ended();
    expect(await outcome(waiting)).toBe("404 not_found");
  });
});
