import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { beforeAll, expect, test } from "vitest";
import { createPackager } from "#live/cmaf/packager.ts";
import type { LiveTimeline } from "#live/playlists/timeline.ts";
import { readEncoder } from "#live/renditions/encoder-output.ts";
import { feed } from "#live/renditions/feed.ts";
import { type EncodedSample, FragmentReader } from "#live/renditions/fragment-reader.ts";
import { Rendition, type RenditionChange } from "#live/renditions/rendition.ts";
import { SourceSegments } from "#live/renditions/source-segments.ts";
import { run } from "#media/ffmpeg.ts";
import { liveArguments } from "#media/live-arguments.ts";
import { readInit } from "#src/lib/isobmff/segments.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { messagesOf, picture, feed as publish, x264 } from "#test/support/live/cmaf-publisher.ts";
import { timelineOf } from "#test/support/live-feed.ts";
import { binaries } from "#test/support/media/sources.ts";
import { fc } from "#test/support/property.ts";

/** How the output of an encoder becomes segments, for a stream whose publisher reconnects after four seconds. */

const SECONDS = 4;
const RENDITIONS = [
  { name: "120p", width: 212, height: 120 },
  { name: "90p", width: 160, height: 90 },
].map((size) => ({ ...size, maxBitrate: 200_000, buffer: 300_000, crf: 30 }));

type PublishedStream = { folder: string; timeline: LiveTimeline; source: SourceSegments };
let published: PublishedStream;
/** What an encoder sends of all of it, and of what begins with segment 3. */
let output: Buffer;
let later: Buffer;

/** A stream of segments of a second, as its playlists list it. */
async function newStream(): Promise<PublishedStream> {
  const messages = await messagesOf(...picture(SECONDS), ...x264(30));
  const folder = emptyFolder();
  const source = new SourceSegments();
  const timeline = timelineOf({ segmentTargetSeconds: 1 });
  const packager = createPackager({
    folder,
    partSeconds: 0.5,
    targetSegmentSeconds: 1,
    onInit: ({ kind, codec }) => timeline.init({ track: "180p", kind, codec, frameRate: 30 }),
    onPart({ data: _, path: __, ...part }) {
      timeline.part({ ...part, track: "180p" });
      source.part({ ...part, track: "180p" });
    },
    onSegment({ name, ...segment }) {
      timeline.segment({ ...segment, track: "180p", name: name as string });
      source.segment({ ...segment, track: "180p", name: name as string });
    },
  });
  publish(packager, messages);
  await packager.interrupt();
  timeline.interrupted();
  packager.resume();
  timeline.resumed(Date.UTC(2026, 10, 25, 13));
  publish(packager, messages);
  await packager.end();
  source.end();
  return { folder, timeline, source };
}

async function encode(from: number): Promise<Buffer> {
  const { signal } = new AbortController();
  const encoded = new PassThrough();
  const input = Readable.from(feed(published.source, { folder: join(published.folder, "180p"), from, signal }));
  const all = buffer(encoded);
  await run(binaries.ffmpeg, { args: liveArguments(RENDITIONS), input, output: encoded, timeLimitMs: 60_000 });
  return all;
}

beforeAll(async () => {
  published = await newStream();
  output = await encode(1);
  later = await encode(3);
});

async function renditionsOf(changes: RenditionChange[]) {
  const { source, folder } = published;
  const { delay: sourceDelay } = readInit(await readFile(join(folder, "180p", "init.mp4")));
  expect(sourceDelay).toBeGreaterThan(0);
  const common = { folder: emptyFolder(), source, sourceDelay, frameRate: 30, keptSeconds: 100 };
  const renditions = RENDITIONS.map(
    (one) =>
      new Rendition({
        ...common,
        ...one,
        admit: async () => {},
        report: (change) => changes.push(change),
        onFailure: (error) => expect.unreachable(String(error)),
      }),
  );
  atEnd(async () => {
    for (const one of renditions) one.finish();
    for (const one of renditions) await one.settled();
  });
  return renditions;
}

const inPieces = (data: Buffer, bytes: number) =>
  Readable.from(
    Array.from({ length: Math.ceil(data.length / bytes) }, (_, index) =>
      data.subarray(index * bytes, (index + 1) * bytes),
    ),
  );

test("segments begin where those of the publisher do, and an encoder after another continues after gaps", async () => {
  const changes: RenditionChange[] = [];
  const renditions = await renditionsOf(changes);
  // The first encoder ends in the second segment.
  const cut = output.subarray(0, Math.round(output.length * 0.2));
  await readEncoder(inPieces(cut, 1000), renditions);
  for (const one of renditions) one.abandon();
  await readEncoder(inPieces(later, 5000), renditions);
  for (const one of renditions) await one.settled();
  const { timeline } = published;
  for (const change of changes) {
    if (change.type === "init") timeline.init(change.init);
    else if (change.type === "part") timeline.part(change.part);
    else if (change.type === "gap") timeline.gap(change.gap);
    else timeline.segment(change.segment);
  }
  timeline.encode(["120p", "90p"]);
  expect(timeline.variants().map(({ track }) => track)).toEqual(["180p", "120p", "90p"]);
  const read = (track: string) => parseLivePlaylist(timeline.mediaPlaylist(track)?.text() as string);
  const source = read("180p").segments;
  expect(source.map(({ isDiscontinuous }) => isDiscontinuous)).toEqual(Array.from({ length: 8 }, (_, at) => at === 4));
  for (const track of ["120p", "90p"]) {
    const { segments, discontinuitySequence } = read(track);
    expect(discontinuitySequence).toBe(0);
    expect(segments.map(({ number, isGap }) => [number, isGap])).toEqual(
      source.map(({ number }) => [number, number === 2]),
    );
    for (const [index, { date, isDiscontinuous, complete, parts }] of segments.entries()) {
      expect([date, isDiscontinuous]).toEqual([source[index]?.date, source[index]?.isDiscontinuous]);
      // The last one is open: its end is not known.
      if (complete) expect(complete.durationSeconds).toBeCloseTo(source[index]?.complete?.durationSeconds as number, 4);
      // Parts of older segments have left the playlists.
      if (index >= 6) expect(parts.length).toBe(complete ? 2 : 1);
    }
  }
});

test("an encoder with other parameters than the one before is refused", async () => {
  const renditions = await renditionsOf([]);
  await expect(readEncoder(inPieces(output, 1000), renditions.slice(0, 1))).rejects.toThrow("number of tracks");
  await expect(readEncoder(inPieces(output, 1000), renditions.toReversed())).rejects.toThrow("another size");
});

const samplesOf = (chunks: Iterable<Buffer>) => {
  const samples: EncodedSample[] = [];
  const reader = new FragmentReader({ onTracks: () => {}, onSample: (sample) => samples.push(sample) });
  for (const chunk of chunks) reader.push(chunk);
  return samples;
};

test("the samples do not depend on the pieces in which they arrive", async () => {
  const whole = samplesOf([output]);
  expect(whole.length).toBe(2 * 2 * SECONDS * 30);
  expect(samplesOf(await inPieces(output, 7).toArray())).toEqual(whole);
});

test("damaged files throw, or have samples of their own bytes only", () => {
  const damage = fc.record({ at: fc.nat(4000), value: fc.nat(255), from: fc.nat(output.length - 1) });
  fc.assert(
    fc.property(fc.array(damage, { minLength: 1, maxLength: 4 }), (all) => {
      const copy = Buffer.from(output);
      // The headers are at the start; data have no structure.
      for (const { at, value } of all) copy[at] = value;
      let bytes = 0;
      const reader = new FragmentReader({ onTracks: () => {}, onSample: ({ data }) => (bytes += data.length) });
      try {
        reader.push(copy.subarray(0, all[0]?.from));
        reader.push(copy.subarray(all[0]?.from));
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
      expect(bytes).toBeLessThanOrEqual(copy.length);
    }),
    { numRuns: 300 },
  );
});
