import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { readEncryptedTracks } from "#lib/isobmff";
import { encryptedTracksOf } from "#media/encrypted-tracks.ts";
import { probeSource } from "#media/timeline.ts";
import { warningsOf } from "#media/tracks.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { parts } from "#test/support/media/boxes.ts";
import { cluster, element, matroska, textTrack } from "#test/support/media/matroska-file.ts";
import { binaries, fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";

/** Without their key, the decoders of encrypted tracks return noise. */

const folder = emptyFolder();
const at = (name: string) => join(folder, name);
const KEYS = [
  ...["-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "76a6c65c5ea762046bd749a2e632ccbb"],
  ...["-encryption_kid", "a7e61c373e219033c21091fa607bf3b8"],
];
const ROWS = [
  ["encrypted.mp4", []],
  ["faststart.mp4", ["-movflags", "+faststart"]],
] as const;
beforeAll(async () => {
  for (const [name, flags] of ROWS)
    await ffmpeg(...picture("160x90", "10", 2), ...sound(2), ...fast, "-c:a", "aac", ...KEYS, ...flags, at(name));
});

test.each(ROWS)("%s is of a format that is not supported", async (name) => {
  await expect(probeSource(at(name), binaries, { cwd: emptyFolder() })).rejects.toMatchObject({
    code: "unsupported_format",
    message:
      "Nothing in the source can be decoded. Its container is mov,mp4,m4a,3gp,3g2,mj2, with track 1 (video, h264, encrypted), track 2 (audio, aac, encrypted).",
  });
});

test("encrypted tracks of Matroska are named", async () => {
  const encodings = (kind: number) => element(0x6d80, element(0x6240, element(kind, element(0x47e1, 5))));
  const entry = (number: number, ...more: Buffer[]) => textTrack(number, "S_TEXT/UTF8", ...more);
  const file = matroska([entry(1, encodings(0x5035)), entry(2), entry(3, encodings(0x5034))], [cluster(0)]);
  writeFileSync(at("encrypted.mkv"), file);
  expect([...(await encryptedTracksOf(at("encrypted.mkv")))]).toEqual([0]);
  for (let length = 0; length < file.length; length += 5) {
    writeFileSync(at("cut.mkv"), file.subarray(0, length));
    expect((await encryptedTracksOf(at("cut.mkv"))).size).toBeLessThanOrEqual(1);
  }
});

/** `tenc`: version and flags, two bytes, whether samples are encrypted. */
const cleared = (file: Buffer, which: number) => {
  const changed = Buffer.from(file);
  let position = -1;
  for (let count = 0; count <= which; count++) position = changed.indexOf("tenc", position + 1);
  changed[position + 4 + 4 + 2] = 0;
  return changed;
};

test("a track that is not encrypted plays, and the other one is named", async () => {
  const file = readFileSync(at("encrypted.mp4"));
  writeFileSync(at("half.mp4"), cleared(file, 0));
  const probe = await probeSource(at("half.mp4"), binaries, { cwd: emptyFolder() });
  expect([probe.video?.codec, probe.audio]).toEqual(["h264", []]);
  expect(warningsOf(probe)).toEqual([
    { code: "track_skipped", message: "Track 2 (audio, aac, encrypted) cannot be decoded and was left out." },
  ]);
  const moov = parts(cleared(cleared(file, 0), 1)).get("moov") as Buffer;
  expect([...readEncryptedTracks(moov)]).toEqual([]);
});

test("tracks of FairPlay, and malformed boxes", () => {
  const moov = Buffer.from(parts(readFileSync(at("encrypted.mp4"))).get("moov") as Buffer);
  moov.write("drmi", moov.indexOf("encv"), "latin1");
  moov.write("drms", moov.indexOf("enca"), "latin1");
  expect([...readEncryptedTracks(moov)]).toEqual([0, 1]);
  for (let length = 0; length < moov.length; length += 13)
    expect(readEncryptedTracks(moov.subarray(0, length)).size).toBeLessThanOrEqual(2);
});
