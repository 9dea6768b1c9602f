import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

/** How the server's files that write to the disk respect its reserve. A new one must be added here. */
const WRITERS: Record<string, "reserve" | "operator" | "small"> = {
  // Bytes from other machines: every write passes `admit` or `ensure` of storage/objects/space.ts.
  "storage/objects/local.ts": "reserve",
  "storage/objects/local-parts.ts": "reserve",
  "storage/objects/local-appends.ts": "reserve",
  "storage/objects/part-appends.ts": "reserve",
  "storage/objects/write-body.ts": "reserve",
  "src/features/assets/csv-file.ts": "reserve",
  // From storage: what another server has received.
  "src/features/live/speech/stream-speech.ts": "reserve",
  "src/features/live/streams/stored-media.ts": "reserve",
  // From a publisher: the caller passes `admit`.
  "src/live/captions/written-captions.ts": "reserve",
  "src/live/cmaf/segment-file.ts": "reserve",
  "src/live/cmaf/track-writer.ts": "reserve",
  "src/live/ingest/finish-recording.ts": "reserve",
  "src/live/ingest/write-source.ts": "reserve",
  // Commands of the operator, to a location that the operator chooses.
  "src/features/operations/backup/write.ts": "operator",
  "src/features/operations/backup/read.ts": "operator",
  "storage/db/copy.ts": "operator",
  "storage/db/snapshot.ts": "operator",
  "src/features/operations/replica/restore.ts": "operator",
  "storage/replica/restore.ts": "operator",
  "storage/replica/snapshot.ts": "operator",
  // Files whose size no client controls.
  "src/platform/config/secrets.ts": "small",
  "src/lib/executable/extract.ts": "small",
  "src/open.ts": "small",
  "storage/db/lock.ts": "small",
  "storage/objects/folders.ts": "small",
  "storage/objects/part-files.ts": "small",
  // At most what a checkpoint has to read: 32 MiB.
  "storage/replica/saved-state.ts": "small",
  // On the machine of a customer.
  "src/clients/typescript/upload/file.ts": "small",
  // Only reads.
  "src/lib/isobmff/empty-edits.ts": "small",
  "src/lib/isobmff/fragments.ts": "small",
  "src/live/cmaf/scan-segment.ts": "small",
  "storage/replica/wal.ts": "small",
};

const MODULE = /import\s+(?:type\s+)?\{([^}]*)\}\s+from\s+"node:fs(?:\/promises)?"/g;
const WRITES =
  /^(writeFile|writeFileSync|appendFile|appendFileSync|createWriteStream|copyFile|copyFileSync|cp|cpSync|open|openSync|write|writeSync|writev)$/;

const sources = ["src", "storage"]
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
  .map((entry) => relative(root, join(entry.parentPath, entry.name)))
  // A worker watches the disks that it writes to (src/worker/watch-space.ts), because ffmpeg cannot be asked before
  // each write.
  .filter((path) => !/^src\/(worker|media|lib\/sandbox|platform\/outbound\/transcribe)\//.test(path))
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

const namesIn = (text: string) =>
  [...text.matchAll(MODULE)]
    .flatMap(([, names = ""]) => names.split(","))
    .map((name) => name.trim().replace(/^type\s+/, ""));

const writers = sources.filter(
  ({ path, text }) =>
    // The files that call it are writers instead.
    path !== "src/lib/base/write-all.ts" &&
    (namesIn(text).some((name) => WRITES.test(name)) || /\.(writev|writeFile|appendFile)\(|\bwriteAll\(/.test(text)),
);

test("every file that writes to the disk is listed, with how it respects the reserve", () => {
  const found = writers.map(({ path }) => path);
  expect(found.filter((path) => !(path in WRITERS))).toEqual([]);
  expect(Object.keys(WRITERS).filter((path) => !found.includes(path))).toEqual([]);
});

test("code that writes bytes of clients checks the reserve", () => {
  const found = writers.filter(({ path }) => WRITERS[path] === "reserve");
  expect(found.length).toBeGreaterThan(4);
  for (const { path, text } of found) expect(text, path).toMatch(/\b(admit|whileWriting|ensure)\b/);
  // For a body every batch is admitted; code that writes one without it would pass none.
  const bodies = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\bwriteBody\(([^;]*)\)/g)].map(([, call]) => ({ path, call })),
  );
  for (const { path, call } of bodies)
    if (path !== "storage/objects/write-body.ts") expect(call, path).toContain("...writing");
});
