import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { MediaError } from "#media/error.ts";
import { type Binaries, run } from "#media/ffmpeg.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { missingIsolation } from "#src/lib/sandbox/sandbox.ts";
import { rows as tested } from "#test/support/amount.ts";
import { box, parts, rebuilt } from "#test/support/media/boxes.ts";
import { binaries, fast, ffmpeg, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import {
  MEDIA,
  manyPrograms,
  manyTracks,
  nested,
  nestedMasters,
  nestedScript,
  packedMovie,
  patched,
  resizedJpegs,
  waveFile,
  withAlias,
  withReference,
} from "./corpus.ts";

const folder = temporaryFolder("corpus");
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const MEMORY_BYTES = 2 ** 30;
/** The documented time limit; each takes well under a second here. */
const REFUSED_WITHIN_MS = 30_000;

/** Possible targets of a reference: a file with recognizable content, and a port that counts connections. */
const canary = join(folder, "canary.ts");
let port = 0;
let calls = 0;
const listener = createServer((socket) => {
  calls++;
  socket.destroy();
});
const made: Record<string, Buffer> = {};

beforeAll(async () => {
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  port = (listener.address() as { port: number }).port;
  const make = async (name: string, ...args: string[]) => {
    const path = join(folder, name);
    await ffmpeg(...args, path);
    made[name] = readFileSync(path);
  };
  await make("canary.ts", ...picture("320x180", "25", 1), ...fast);
  await make("plain.mp4", ...picture("320x180", "25", 1), ...fast);
  await make("raw.mov", ...picture("64x64", "25", 1), "-c:v", "rawvideo", "-pix_fmt", "yuv420p");
  await make("jpeg.avi", ...picture("64x64", "25", 1), "-c:v", "mjpeg");
  await make("sound.mp4", ...sound(1), "-c:a", "aac");
  await make("fragments.mp4", ...picture("64x64", "25", 1), ...fast, "-movflags", "frag_keyframe+empty_moov");
});
afterAll(() => listener.close());

const plain = () => made["plain.mp4"] as Buffer;
const raw = () => made["raw.mov"] as Buffer;
const STBL = [...MEDIA, "stbl"].join("/");
const list = (uri: string) => `#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n${uri}\n#EXT-X-ENDLIST\n`;
const mpd = (uri: string) =>
  `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT9S"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>${uri}</BaseURL></Representation></AdaptationSet></Period></MPD>`;
const here = () => `file://${canary}`;
const there = () => `http://127.0.0.1:${port}/canary.ts`;

/** `made`: reading it for what it is does no harm; then the limits apply, and nothing else is accessed. */
type Row = [name: string, content: () => Buffer | string, outcome: "refused" | "made" | "either", file?: string];
const rows: Row[] = [
  ["an HLS playlist that names a file", () => list(here()), "refused"],
  ["an HLS playlist that names an address", () => list(there()), "refused"],
  [
    "an HLS playlist with a key elsewhere",
    () => list(here()).replace("#EXTINF", `#EXT-X-KEY:METHOD=AES-128,URI="${there()}"\n#EXTINF`),
    "refused",
  ],
  ["an HLS playlist under a name of transport streams", () => list(there()), "refused", "playlist.ts"],
  ["a master playlist", () => `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${there()}\n`, "refused", "master.m3u8"],
  ["a DASH manifest that names a file", () => mpd(here()), "refused"],
  ["a DASH manifest that names an address", () => mpd(there()), "refused", "manifest.mpd"],
  ["an entity that names a file", () => `<!DOCTYPE MPD [<!ENTITY x SYSTEM "${here()}">]>${mpd("&x;")}`, "refused"],
  ["a concat script", () => `ffconcat version 1.0\nfile '${canary}'\n`, "refused"],
  [
    "a concat script that names an address",
    () => `ffconcat version 1.0\nfile '${there()}'\n`,
    "refused",
    "list.ffconcat",
  ],
  [
    "a session description",
    () =>
      `v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video ${port} RTP/AVP 96\na=rtpmap:96 H264/90000\n`,
    "refused",
    "call.sdp",
  ],
  ["a reference of Windows Media", () => `[Reference]\nRef1=${there()}\n`, "refused", "list.asf"],
  [
    "an advanced stream redirector",
    () => `<asx version="3.0"><entry><ref href="${there()}"/></entry></asx>`,
    "refused",
    "list.asx",
  ],
  ["a graph of filters", () => `movie=${canary}`, "refused", "graph.lavfi"],
  [
    "an image that refers to another",
    () => `<svg xmlns="http://www.w3.org/2000/svg"><image href="${there()}"/></svg>`,
    "refused",
    "drawing.svg",
  ],
  ["a movie whose data lie in a file, by URL", () => withReference(plain(), here()), "either"],
  ["a movie whose data lie at an address", () => withReference(plain(), there()), "either"],
  ["a movie whose data lie in a file, by alias", () => withAlias(raw(), canary), "either", "alias.mov"],
  [
    "an image of four billion pixels",
    () => resizedJpegs(made["jpeg.avi"] as Buffer, 65_500, 65_500),
    "refused",
    "bomb.avi",
  ],
  ["a raw image of four billion pixels", () => patchedSize(raw(), 65_000), "refused", "raw.mov"],
  ["a movie that claims to last 136 years", () => patched(plain(), "moov/mvhd", 16, 0xffffffff), "either"],
  [
    "a track that claims to last 136 years",
    () => patched(patched(plain(), "moov/mvhd", 16, 0xffffffff), "moov/trak/mdia/mdhd", 16, 0xffffffff),
    "either",
  ],
  ["samples that each last a day", () => patched(plain(), `${STBL}/stts`, 12, 0x7fffffff), "either"],
  ["four billion samples, declared", () => patched(plain(), `${STBL}/stsz`, 8, 0xffffffff), "either"],
  ["four thousand million samples of one size", () => patched(plain(), `${STBL}/stsz`, 4, 1, 0xffffffff), "either"],
  ["four thousand million chunks", () => patched(plain(), `${STBL}/stco`, 4, 0xffffffff), "either"],
  [
    "a fragment of four thousand million samples",
    () => patched(made["fragments.mp4"] as Buffer, "moof/traf/trun", 4, 0xffffffff),
    "either",
  ],
  ["a hundred thousand tracks", () => manyTracks(made["sound.mp4"] as Buffer, 100_000), "refused"],
  ["a hundred thousand streams of a transport stream", () => manyPrograms(500, 200), "refused", "many.ts"],
  [
    "boxes a hundred thousand deep",
    () => Buffer.concat([parts(plain()).get("ftyp") as Buffer, nested("moov", 100_000)]),
    "refused",
  ],
  [
    "user data a hundred thousand deep",
    () => rebuilt(plain(), ["moov"], (moov) => Buffer.concat([moov, nested("udta", 100_000)])),
    "either",
  ],
  [
    "a packed movie of half a gigabyte",
    () =>
      Buffer.concat([parts(plain()).get("ftyp") as Buffer, packedMovie(box("moov", box("free", Buffer.alloc(5e8))))]),
    "refused",
  ],
  ["masters a hundred thousand deep", () => nestedMasters(100_000), "refused", "deep.mkv"],
  ["script data a hundred thousand deep", () => nestedScript(100_000), "refused", "deep.flv"],
  ["sixty-five thousand channels", () => waveFile(65_535, 48_000, 16, 100_000), "refused", "choir.wav"],
  ["four thousand million samples a second", () => waveFile(2, 0xffffffff, 16, 100_000), "either", "fast.wav"],
  ["a name that counts", () => plain(), "made", "img%03d.mp4"],
  ["a name that is an option", () => plain(), "made", "-y"],
  ["a name that is a protocol", () => plain(), "made", "http:127.0.0.1"],
];

/** Every size in the track's headers. */
function patchedSize(file: Buffer, side: number): Buffer {
  const sized = rebuilt(file, [...MEDIA, "stbl", "stsd"], (body) => {
    const copy = Buffer.from(body);
    copy.writeUInt16BE(side, 8 + 8 + 24);
    copy.writeUInt16BE(side, 8 + 8 + 26);
    return copy;
  });
  return patched(sized, "moov/trak/tkhd", 76, side * 65_536, side * 65_536);
}

const programs: [string, Binaries][] = [
  ["the ffmpeg that is shipped", binaries],
  // An operator's own ffmpeg supports all playlists.
  ["the system's ffmpeg", { ffmpeg: "ffmpeg", ffprobe: "ffprobe" }],
];

const REFUSALS = ["input_invalid", "unsupported_format", "source_too_long", "input_has_no_media", "out_of_memory"];

describe.each(tested(programs, 1))("%s", (_, tools) => {
  test.each(rows)("%s", async (_, content, outcome, file = "source.mp4") => {
    const own = join(folder, `case-${++cases}`);
    mkdirSync(join(own, "work"), { recursive: true });
    const input = join(own, file);
    writeFileSync(input, content());
    calls = 0;
    const startedAt = performance.now();
    const outDir = join(own, "out");
    const memoryBytes = MEMORY_BYTES;
    const ended = await probe(input, tools, { cwd: join(own, "work"), memoryBytes })
      .then((found) =>
        encode({ input, outDir, probe: found, spec, binaries: tools, scratchDir: join(own, "work"), memoryBytes }),
      )
      .then(
        (result) => result,
        (error) => error,
      );
    const tookMs = performance.now() - startedAt;
    if (ended instanceof Error) {
      expect(outcome, `${ended} ${(ended as MediaError).logTail}`).not.toBe("made");
      expect(ended).toBeInstanceOf(MediaError);
      // Another worker would fail in the same way.
      expect(ended, (ended as MediaError).logTail).toMatchObject({ retryable: false });
      expect(REFUSALS).toContain((ended as MediaError).code);
      expect((ended as MediaError).message + (ended as MediaError).logTail).not.toContain(folder);
      expect(tookMs).toBeLessThan(REFUSED_WITHIN_MS);
    } else {
      expect(outcome).not.toBe("refused");
      // The referenced file shows a 320x180 test pattern of a second; so does `plain`, but not the raw one.
      expect(ended.bytes).toBeLessThan(50_000_000);
    }
    expect(calls).toBe(0);
    rmSync(own, { recursive: true, force: true });
  });
});
let cases = 0;

test("data in another file is never read", async () => {
  // Without its own data, a playable result could only come from the reference.
  const { ftyp, moov } = Object.fromEntries(parts(plain()));
  const input = join(folder, "hollow.mp4");
  for (const hollow of [withReference, withAlias]) {
    writeFileSync(input, hollow(Buffer.concat([ftyp as Buffer, moov as Buffer]), canary));
    for (const [name, tools] of programs) {
      const end = await probe(input, tools)
        .then((found) => encode({ input, outDir: join(folder, "hollow"), probe: found, spec, binaries: tools }))
        .catch((error) => error);
      expect(end, name).toBeInstanceOf(MediaError);
    }
  }
});

describe("the sandbox", async () => {
  const missing = await missingIsolation(binaries.ffmpeg);
  if (missing.length > 0) console.log(`skipped where this system has ${missing.join(", ")}`);
  const sh = (script: string, memoryBytes?: number) =>
    run("/bin/sh", { args: ["-c", script], cwd: folder, timeLimitMs: 20_000, memoryBytes });

  test.skipIf(missing.includes("no network namespace"))("has no network", async () => {
    calls = 0;
    const fetching = ["-nostdin", "-i", there(), "-f", "null", "-"];
    await expect(run("/usr/bin/ffmpeg", { args: fetching, cwd: folder, timeLimitMs: 20_000 })).rejects.toThrow();
    expect(calls).toBe(0);
  });

  test.skipIf(missing.includes("no limits on memory and processor time"))("has limits", async () => {
    const limits = (await sh("ulimit -d; ulimit -c; ulimit -t", 256 * 2 ** 20)).toString();
    expect(limits).toMatch(/^262144\n0\n\d+\n$/);
    const input = join(folder, "plain.mp4");
    const found = await probe(input, binaries);
    // With less, ffmpeg does not start all of its threads, which it reports as another error.
    const small = { memoryBytes: 98 * 2 ** 20 };
    await expect(
      encode({ input, outDir: join(folder, "tight"), probe: found, spec, binaries, ...small }),
    ).rejects.toMatchObject({
      code: "out_of_memory",
      retryable: false,
    });
  });
});
