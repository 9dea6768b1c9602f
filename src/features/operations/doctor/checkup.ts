import { type App, forApp } from "#app.ts";
import { HttpError, setInterval } from "#lib/base";
import { binariesAside, cacheDir } from "#lib/executable";
import { encodingSpec } from "#media/encoding-spec.ts";
import { detectFfmpegCapabilities } from "#media/ffmpeg-capabilities.ts";
import { localWorkerCount } from "#platform/config/local-worker-count.ts";
import { examineClock } from "./clock.ts";
import { examineDisk } from "./disk.ts";
import { agreeOnStorage, databaseResponds, type Finding, lostRows, reasonOf, runCheck } from "./finding.ts";
import { compareObjects } from "./objects.ts";
import { examinePermissions } from "./permissions.ts";
import { examineTenantRows } from "./tenant-rows.ts";
import { transcriptionWorks } from "./transcription.ts";

export type Checkup = {
  fix: boolean;
  force: boolean;
  status: "running" | "done" | "failed";
  stage: string;
  /** Objects processed in this stage. */
  objects: number;
  findings: Finding[];
  startedAt: number;
  finishedAt: number | null;
};

/** Options of a check-up; `force` has no effect without `fix`. */
export type CheckupOptions = Pick<Checkup, "fix" | "force">;

/** Published for the other processes. */
const POSTED = "checkup";
const POST_EVERY_MS = 250;

const checkups = forApp((): { last: Checkup | null } => ({ last: null }));

/** The check-up in progress, else the last one since the start, in whichever process of the server. */
export async function lastCheckup(app: App): Promise<Checkup | null> {
  const { last } = checkups(app);
  if (last?.status === "running") return last;
  const elsewhere = (await app.peers?.posted(POSTED)) as Checkup | undefined;
  return elsewhere && (last === null || elsewhere.startedAt > last.startedAt) ? elsewhere : last;
}

/** The quick checks: all except ffmpeg and the objects. */
export async function quickCheckup(app: App, { fix }: { fix: boolean }): Promise<Finding[]> {
  return [
    ...(await lostRows(app)),
    ...(await databaseResponds(app)),
    await runCheck("settings", () => agreeOnStorage(app)),
    await runCheck("clock", () => examineClock(app)),
    await runCheck("permissions", () => examinePermissions(app, { fix })),
    await runCheck("disk", () => examineDisk(app)),
    await runCheck("workers", async () => describeWorkers(app)),
    ...(await transcriptionWorks(app)),
  ];
}

function describeWorkers({ config }: App): string {
  const { count, reason } = localWorkerCount(config);
  return `${count === 1 ? "one local worker" : `${count} local workers`}: ${reason}`;
}

/**
 * Whether a check-up may start; a request with the same options joins the one in progress. Throws 409 when the options
 * differ.
 */
export async function runningCheckup(app: App, { fix, force }: CheckupOptions): Promise<Checkup | null> {
  const last = await lastCheckup(app);
  if (last?.status !== "running") return null;
  if (last.fix === fix && last.force === force) return last;
  throw new HttpError(
    409,
    "checkup_running",
    `Another check is running, ${last.fix ? "with" : "without"} --fix${last.force ? " and --force" : ""}; wait until it is over.`,
  );
}

/** Starts a check-up. It ends by itself, or with the program. */
export async function startCheckup(app: App, { fix, force }: CheckupOptions): Promise<Checkup> {
  const checkup: Checkup = {
    fix,
    force,
    status: "running",
    stage: "database, storage, clock, permissions and disk",
    objects: 0,
    findings: [],
    startedAt: app.clock.now(),
    finishedAt: null,
  };
  checkups(app).last = checkup;
  await app.peers?.post(POSTED, checkup);
  void published(app, checkup, () => run(app, checkup));
  return checkup;
}

/** Two that start at once in two processes run one after the other. */
async function published(app: App, checkup: Checkup, work: () => Promise<void>): Promise<void> {
  const { peers } = app;
  if (!peers) return work();
  const timer = setInterval(() => void peers.post(POSTED, checkup), POST_EVERY_MS);
  const lock = await peers.take(POSTED);
  try {
    await work();
  } finally {
    lock.end();
    clearInterval(timer);
    await peers.post(POSTED, checkup);
  }
}

async function run(app: App, checkup: Checkup): Promise<void> {
  const { fix, force } = checkup;
  const signal = app.stopping;
  try {
    checkup.findings.push(...(await quickCheckup(app, { fix })));
    checkup.stage = "ffmpeg";
    const { ffmpeg, ffprobe, encoder } = app.config;
    checkup.findings.push(
      await runCheck("ffmpeg", async () => {
        const binaries = await binariesAside({ ffmpeg, ffprobe, cacheDir: cacheDir() });
        const version = await detectFfmpegCapabilities(binaries, { encoder, spec: encodingSpec });
        return `${version}: ${binaries.ffmpeg} (${binaries.origin})`;
      }),
    );
    signal.throwIfAborted();
    checkup.findings.push(await runCheck("tenants", examineTenantRows(app, { fix })));
    signal.throwIfAborted();
    // With unavailable storage all objects would look missing.
    if (checkup.findings.some(({ check, ok }) => !ok && (check === "storage" || check === "database"))) {
      const detail = "not checked, because storage or database is not responding";
      checkup.findings.push({ check: "missing", ok: false, detail, fixed: 0 });
    } else {
      const tell = (stage: string, objects: number) => Object.assign(checkup, { stage, objects });
      checkup.findings.push(...(await compareObjects(app, { fix, force, signal, tell })));
    }
    checkup.status = "done";
  } catch (error) {
    const detail = signal.aborted ? "the server stopped" : reasonOf(error);
    checkup.findings.push({ check: "check-up", ok: false, detail, fixed: 0 });
    checkup.status = "failed";
    if (!signal.aborted) app.log.error({ err: error }, "a check failed");
  } finally {
    checkup.finishedAt = app.clock.now();
    const fixed = checkup.findings.reduce((sum, finding) => sum + finding.fixed, 0);
    const faults = checkup.findings.filter(({ ok }) => !ok).map(({ check }) => check);
    app.log.info({ fix, fixed, faults }, "a check has completed");
  }
}
