import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { expect, test } from "vitest";
import { applyTransition, IllegalTransition, type Subject } from "#features/transcoding/lifecycle/apply.ts";
import {
  type InputStatus,
  type JobStatus,
  type PlaybackStatus,
  TRANSITIONS,
  type Transition,
  type TransitionName,
} from "#features/transcoding/lifecycle/transitions.ts";
import { INPUT_STATUSES, JOB_STATUSES, PLAYBACK_STATUSES } from "#model/enums.ts";
import type { Db } from "#storage/db/open.ts";
import { assets, events, transcodingJobs, uploads } from "#storage/db/schema.ts";
import { testApp } from "#test/support/app.ts";

type State = { input: InputStatus; playback: PlaybackStatus; job: JobStatus | "none" };

const NAMES = Object.keys(TRANSITIONS) as TransitionName[];
const STATES: State[] = INPUT_STATUSES.flatMap((input) =>
  PLAYBACK_STATUSES.flatMap((playback) =>
    (["none", ...JOB_STATUSES] as const).map((job) => ({ input, playback, job })),
  ),
);

/** The state after `name` by the table; null when it is illegal. */
function expected(name: TransitionName, { input, playback, job }: State): State | null {
  const transition: Transition = TRANSITIONS[name];
  const next = {
    input: transition.input ? transition.input[input] : input,
    playback: transition.playback ? transition.playback[playback] : playback,
    job: transition.job ? transition.job[job] : job,
  };
  return Object.values(next).includes(undefined) ? null : (next as State);
}

class RolledBack extends Error {}

test.each(NAMES)("%s: from every state it leads to the one in the table, or changes nothing", async (name) => {
  const { opened, tenant } = await testApp();
  const { app } = opened;
  const { id: tenantId } = await tenant();
  for (const state of STATES) {
    const about = JSON.stringify(state);
    let after: State | IllegalTransition | null = null;
    let emitted: string[] = [];
    await app
      .write(async (tx) => {
        const subject = await rowsOf(tx, tenantId, state);
        const job = { tenantId, assetId: subject.assetId, maxAttempts: 3 };
        const isNew = TRANSITIONS[name].events.length > 0 && "none" in ((TRANSITIONS[name] as Transition).job ?? {});
        try {
          const changed = await applyTransition(tx, app, name, subject, isNew ? { job } : {});
          const row = changed.job ?? (await jobOf(tx, subject.jobId));
          const { inputStatus: input, playbackStatus: playback } = changed.asset;
          after = { input, playback, job: row?.status ?? "none" };
          emitted = (await tx.select().from(events).all()).map(({ type }) => type);
        } catch (error) {
          if (!(error instanceof IllegalTransition)) throw error;
          after = error;
        }
        throw new RolledBack();
      })
      .catch((error) => {
        if (!(error instanceof RolledBack)) throw error;
      });
    const wanted = expected(name, state);
    if (wanted === null) {
      expect(after, about).toBeInstanceOf(IllegalTransition);
      continue;
    }
    expect(after, about).toEqual(wanted);
    const isErrored = wanted.playback === "errored";
    const types = TRANSITIONS[name].events.filter((type) => type !== "video.asset.errored" || isErrored);
    expect(emitted, about).toEqual(types);
  }
});

test("an illegal transition rolls back the change that it is a part of", async () => {
  const { opened, tenant } = await testApp();
  const { app } = opened;
  const { id: tenantId } = await tenant();
  const subject = await app.write((tx) =>
    rowsOf(tx, tenantId, { input: "uploaded", playback: "errored", job: "none" }),
  );
  const change = app.write(async (tx) => {
    await tx.update(assets).set({ title: "changed" }).where(eq(assets.id, subject.assetId));
    await applyTransition(tx, app, "lose", subject);
  });
  await expect(change).rejects.toThrow(IllegalTransition);
  const asset = await app.db.select().from(assets).where(eq(assets.id, subject.assetId)).get();
  expect(asset).toMatchObject({ title: "t", playbackStatus: "errored" });
  expect(await app.db.select().from(events).all()).toEqual([]);
});

test("media that play stay playable, except when they are lost", () => {
  const leaving = NAMES.filter((name) => {
    const { playback }: Transition = TRANSITIONS[name];
    return playback?.ready !== undefined && playback.ready !== "ready";
  });
  expect(leaving).toEqual(["unpublish", "lose"]);
});

test("ready is announced once by a job that publishes early", async () => {
  const { opened, tenant } = await testApp();
  const { app } = opened;
  const { id: tenantId } = await tenant();
  await app.write(async (tx) => {
    const subject = await rowsOf(tx, tenantId, { input: "uploaded", playback: "processing", job: "running" });
    await applyTransition(tx, app, "publish", subject);
    await applyTransition(tx, app, "complete", { ...subject, isPublished: true });
  });
  const rows = await app.db.select().from(events).all();
  expect(rows.map(({ type }) => type)).toEqual(["video.asset.ready", "video.asset.encoded"]);
});

test("only the lifecycle module writes the statuses of existing assets and jobs", () => {
  const root = join(import.meta.dirname, "../../../src");
  const OWNERS = ["features/transcoding/lifecycle/"];
  const updates = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !OWNERS.some((owner) => path.startsWith(owner)))
    .flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8");
      const statements = text.match(/\.update\((?:assets|transcodingJobs|jobs)\)\s*\.set\([^;]*?\.where/g) ?? [];
      return statements.filter((each) => /\b(?:status|inputStatus|playbackStatus)\b/.test(each)).map(() => path);
    });
  expect(updates).toEqual([]);
});

let assetCount = 0;
async function rowsOf(tx: Db, tenantId: number, { input, playback, job }: State): Promise<Subject> {
  const times = { createdAt: 0, updatedAt: 0 };
  const asset = await tx
    .insert(assets)
    .values({
      ...times,
      tenantId,
      externalId: `vid_${++assetCount}`,
      title: "t",
      inputStatus: input,
      playbackStatus: playback,
      playbackPolicy: "public",
      sourceKey: "",
    })
    .returning()
    .get();
  const upload = await tx
    .insert(uploads)
    .values({
      ...times,
      tenantId,
      assetId: asset.id,
      filename: "a.mp4",
      contentType: "video/mp4",
      bytesExpected: 1,
      objectKey: "",
      expiresAt: 0,
    })
    .returning()
    .get();
  if (job === "none") return { assetId: asset.id, upload };
  const values = { ...times, tenantId, assetId: asset.id, status: job, maxAttempts: 3 };
  const row = await tx.insert(transcodingJobs).values(values).returning().get();
  return { assetId: asset.id, jobId: row.id, upload };
}

const jobOf = (tx: Db, id: number | undefined) =>
  tx
    .select()
    .from(transcodingJobs)
    .where(eq(transcodingJobs.id, id ?? -1))
    .get();
