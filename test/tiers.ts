/**
 * The tiers of the tests, by folder: `fast` is `npm test`, `full` adds the suites, `nightly` adds what takes long. Paths
 * are glob patterns relative to the root of the project.
 */
const FOLDERS = { fast: "test/{unit,api,hostile-worker}", full: "test/suites", nightly: "test/nightly" };

export type Tier = keyof typeof FOLDERS;

/**
 * Files that change the state of their process (environment, V8 flags, module-level state), or measure it, have this
 * ending and a process of their own. All others share the processes, and the modules that these have loaded.
 */
const ALONE = "isolated.test.ts";

/**
 * Repeated over a remote database, which has its own client and protocol: the files of the API that depend on transactions,
 * claims, leases, lists, search and imports. All others use the database in the same ways.
 */
const REMOTE = [
  "test/api/assets/{asset-lists,assets,csv}.test.ts",
  "test/api/batch-uploads/batches.test.ts",
  "test/api/billing/checkout.test.ts",
  "test/api/http/repeats.test.ts",
  "test/api/live/live-state.test.ts",
  "test/api/search/search.test.ts",
  "test/api/tenants/{retention,suspended}.test.ts",
  "test/api/transcoding/{cloud-jobs,jobs,task-lifecycle,task-queue}.test.ts",
  "test/api/uploads/uploads.test.ts",
  "test/api/webhooks/webhooks.test.ts",
];

/** More of the same kinds, which only the nightly tier repeats. */
const REMOTE_NIGHTLY = [
  "test/api/analytics/{analytics,beacons}.test.ts",
  "test/api/assets/{bulk,collections,lifecycle}.test.ts",
  "test/api/billing/usage.test.ts",
  "test/api/clips/clips.test.ts",
  "test/api/credentials/sessions.test.ts",
  "test/api/http/isolation.test.ts",
  "test/api/search/{search-words,text-index}.test.ts",
  "test/api/shares/plays.test.ts",
  "test/api/subtitles/{caption-parts,subtitles}.test.ts",
  "test/api/tenants/tenant-deletion.test.ts",
  "test/api/transcoding/{queue-order,tasks}.test.ts",
  "test/suites/load/import-limits.test.ts",
];

type Files = { include: string[]; exclude?: string[] };

/** The files of a tier that share processes. */
export const shared = (tier: Tier): Files => ({
  include: [`${FOLDERS[tier]}/**/*.test.ts`],
  exclude: [`${FOLDERS[tier]}/**/*.${ALONE}`],
});

/** The files of a tier that need a process each. */
export const alone = (tier: Tier): Files => ({ include: [`${FOLDERS[tier]}/**/*.${ALONE}`] });

/** The files that a tier repeats over a remote database. */
export const remote = (tier: Tier): Files => ({
  include: tier === "nightly" ? [...REMOTE, ...REMOTE_NIGHTLY] : REMOTE,
});
