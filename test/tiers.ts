/**
 * The tier of each test file. `npm test` runs all files but those below; `npm run test:full` runs every file. Paths are
 * glob patterns relative to the root of the project.
 */
const FULL = [
  // Browsers, players, and every source that the encoder accepts. test/smoke has one pass of them.
  "test/browser/**/*.test.ts",
  "test/clients/{browser,react}.test.ts",
  "test/players.test.ts",
  "test/media/{additional-codecs,copied-codecs,corpus,exact-clips,exact-clips-codecs,hdr,matrix,passthrough,per-title,spherical,vr-originals}.test.ts",
  "test/media/parallel/*.test.ts",
  // Processes that are killed, disks that fill up, servers that cannot be reached.
  "test/clients/{s3,upload}.test.ts",
  "test/crash/**/*.test.ts",
  "test/remote/**/*.test.ts",
  "test/replica/**/*.test.ts",
  "test/worker/{captions,codecs,killed,live-recording,per-title,recognition,source-ranges,worker,yield}.test.ts",
  "test/live/{processes,publish,rendition-codecs,renditions,simulcast,srt-ffmpeg,srt-fuzz,srt-publish,usage}.test.ts",
  "test/webhooks/{failing-endpoints,fairness,stopped}.test.ts",
  // Need an S3 server, Redis, other services, proxies or systemd.
  "test/cache/**/*.test.ts",
  "test/migration/**/*.test.ts",
  "test/doctor/**/*.test.ts",
  "test/proxy/**/*.test.ts",
  "test/storage/s3-*.test.ts",
  "test/api/{apertium,clips-s3,ingest-s3}.test.ts",
  "test/build/{service,unit-runs}.test.ts",
  "test/docs/{examples,spectral}.test.ts",
  "test/clients/python.test.ts",
  // What `npm run release` writes: it takes a minute, and more for the ffmpeg of another processor.
  "test/{monitoring,release,upgrade}/**/*.test.ts",
  // Many commands, each a process, on real data.
  "test/build/{ffmpeg,packed-run}.test.ts",
  "test/commands/{admin,backup*,cli,doctor,json-log,lost-database,push*,systemd,terminal,tls,webhook}.test.ts",
  // Load, real timeouts, password hashes and hostile input: most take over 10 s, and some measure time.
  "test/api/{body-idle,device-tokens,from-url-limits,import-load,join-kinds,translate}.test.ts",
  "test/parsing/{attacks,linear,regexes}.test.ts",
  "test/lib/align-full-size.test.ts",
  "test/fuzz.test.ts",
];

const ALL = ["test/**/*.test.ts"];
/** What runs once more over a remote database, in the full tier only. */
const API = ["test/api/**/*.test.ts"];

/** The files of each Vitest project. `full` is what the full tier adds to the fast one. */
export const TIERS = {
  fast: { include: ALL, exclude: FULL },
  full: { include: FULL },
  "remote database": { include: API },
};
