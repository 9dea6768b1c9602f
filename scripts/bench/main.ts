import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { paths } from "../build/paths.ts";
import { isLastBuildWarm } from "../build/warm.ts";
import { benchAnalytics } from "./analytics.ts";
import { benchBeacons } from "./beacons.ts";
import { benchPut, benchSegments } from "./bytes.ts";
import { benchConsole } from "./console.ts";
import { benchDeliveries } from "./deliveries.ts";
import { benchEncoders } from "./encoders.ts";
import { benchGuard, recordGuard } from "./guard.ts";
import { benchHostile } from "./hostile/main.ts";
import { benchHostileRotation } from "./hostile-rotation.ts";
import { benchHrana } from "./hrana.ts";
import { benchInstant } from "./instant.ts";
import { benchLibrary } from "./library.ts";
import { benchLists } from "./lists.ts";
import { benchLive } from "./live.ts";
import { benchLiveLoad } from "./live-load.ts";
import { benchLiveSoak } from "./live-soak.ts";
import { benchLiveStreams } from "./live-streams.ts";
import { benchPages } from "./pages/main.ts";
import { benchTasks } from "./pages/tasks.ts";
import { benchParallel } from "./parallel.ts";
import { benchParallelQuality } from "./parallel-quality.ts";
import { benchPerTitle } from "./per-title.ts";
import { EXECUTABLE } from "./processes.ts";
import { benchReplica } from "./replica.ts";
import { benchReads, benchWrites } from "./requests.ts";
import { type Result, table } from "./result.ts";
import { benchSearch } from "./search.ts";
import { benchSeveral } from "./several.ts";
import { benchSoak } from "./soak.ts";
import { benchSpeech } from "./speech.ts";
import { benchStart } from "./start.ts";
import { benchTracing } from "./tracing.ts";
import { benchTranscode } from "./transcode.ts";
import { benchViewers } from "./viewers.ts";
import { benchWorkers } from "./workers.ts";

/** `npm run bench [NAME…]`: each figure is compared with a named reference measured in the same run. */
const BENCHES: Record<string, () => Promise<Result[]>> = {
  start: benchStart,
  reads: benchReads,
  writes: benchWrites,
  several: benchSeveral,
  lists: benchLists,
  search: benchSearch,
  tracing: benchTracing,
  segments: benchSegments,
  speech: benchSpeech,
  viewers: benchViewers,
  put: benchPut,
  deliveries: benchDeliveries,
  beacons: benchBeacons,
  analytics: benchAnalytics,
  live: benchLive,
  "live-streams": benchLiveStreams,
  "live-load": benchLiveLoad,
  "live-soak": benchLiveSoak,
  console: benchConsole,
  pages: benchPages,
  tasks: benchTasks,
  transcode: benchTranscode,
  parallel: benchParallel,
  "parallel-quality": benchParallelQuality,
  "per-title": benchPerTitle,
  encoders: benchEncoders,
  library: benchLibrary,
  instant: benchInstant,
  workers: benchWorkers,
  soak: benchSoak,
  hrana: benchHrana,
  replica: benchReplica,
  hostile: benchHostile,
  "hostile-rotation": benchHostileRotation,
  guard: benchGuard,
};

/** Ten minutes and more: run only when named. */
const BY_NAME = [
  "soak",
  "speech",
  "live-soak",
  "hostile",
  "hostile-rotation",
  "replica",
  "parallel",
  "parallel-quality",
  "per-title",
  "encoders",
  "library",
  "instant",
  "live-streams",
  "live-load",
  "guard",
];

/** `npm run bench guard -- --record` keeps its ratios, for later runs to be compared with. */
const isRecording = process.argv.includes("--record");
const chosen = process.argv.slice(2).filter((argument) => argument !== "--record");
const unknown = chosen.filter((name) => !(name in BENCHES));
if (unknown.length > 0 || !existsSync(EXECUTABLE) || !isLastBuildWarm()) {
  console.error(
    unknown.length > 0
      ? `There is no bench ${unknown.join(", ")}; there are ${Object.keys(BENCHES).join(", ")}.`
      : "Build first, as it is released: npm run build -- --release",
  );
  process.exit(2);
}

const results: Result[] = [];
for (const [name, bench] of Object.entries(BENCHES)) {
  if (chosen.length > 0 ? !chosen.includes(name) : BY_NAME.includes(name)) continue;
  console.error(`${name} …`);
  results.push(...(await bench()));
}
const folder = join(paths.root, "bench-results");
mkdirSync(folder, { recursive: true });
const machine = { processors: cpus().length, model: cpus()[0]?.model, node: process.version };
writeFileSync(
  join(folder, "latest.json"),
  `${JSON.stringify({ measured_at: new Date().toISOString(), machine, results }, null, 2)}\n`,
);
console.log(table(results));
if (chosen.includes("guard")) {
  if (isRecording) recordGuard(results);
  else if (results.some(({ met }) => !met)) process.exitCode = 1;
}
