import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { migrate } from "#storage/db/migrate.ts";
import { bare, folder } from "#test/support/storage/database.ts";

const FOLDER = join(import.meta.dirname, "../../../storage/db/migrations");
const migrations = readdirSync(FOLDER).map((name) => ({ name, sql: readFileSync(join(FOLDER, name), "utf8") }));
/** What the position in the queue was called. */
const POSITION = /RENAME COLUMN (\w+) TO queue_position/.exec(migrations.map(({ sql }) => sql).join("\n"))?.[1];
const before = (name: string) => migrations.filter((one) => one.name < name);

const spec = (video: unknown) => JSON.stringify({ video });
/** Jobs that are open when the server is upgraded, and what they and their parts require from then on. */
const JOBS = [
  { requires: null, parts_require: '{"tasks":1}' },
  { encoding_spec: spec({ additional: [{ codec: "hevc" }] }), requires: null, parts_require: '{"tasks":3}' },
  { encoding_spec: spec({ original: { codecs: ["h264", "hevc"] } }), requires: null, parts_require: '{"tasks":3}' },
  { encoding_spec: spec({ original: { codecs: ["h264"] } }), requires: null, parts_require: '{"tasks":1}' },
  { clip: "{}", requires: '{"clips":1}', parts_require: null },
  { clip: '{"version":2}', requires: '{"clips":2}', parts_require: null },
  { joined: "[]", requires: '{"joins":1}', parts_require: null },
];
/** Tasks by the urgency and rank of before, and their class. */
const TASKS = [
  { urgency: 0, rank: 7, kind: "chunk", service_class: "normal" },
  { urgency: 1, rank: 0, kind: "chunk", service_class: "first" },
  { urgency: 1, rank: 5, kind: "chunk", service_class: "ahead" },
  { urgency: 1, rank: -1, kind: "chunk", service_class: "abandoned" },
  { urgency: 2, rank: 0, kind: "audio", service_class: "requested" },
];

test("jobs and tasks that are open during an upgrade keep their place and their class, and require the same", async () => {
  const file = join(folder(), "test.db");
  const url = `file:${file}`;
  await migrate({ url, migrations: before("0082") });
  const old = bare(file);
  const quoted = (value: string | null | undefined) => (value == null ? "NULL" : `'${value}'`);
  old.exec(`PRAGMA foreign_keys = OFF;
    ${JOBS.map(
      ({ encoding_spec, clip, joined }, index) => `INSERT INTO transcoding_jobs
        (tenant_id, asset_id, status, ${POSITION}, encoding_spec, clip, joined, max_attempts, available_at, created_at, updated_at)
        VALUES (1, ${index + 1}, 'queued', ${index + 40}, ${quoted(encoding_spec)}, ${quoted(clip)}, ${quoted(joined)}, 3, 1, 1, 1);`,
    ).join("\n")}
    ${TASKS.map(
      ({ urgency, rank, kind }, index) => `INSERT INTO transcoding_tasks
        (tenant_id, job_id, attempt_id, kind, status, ${POSITION}, urgency, rank, available_at, weight, max_attempts, created_at, updated_at)
        VALUES (1, 2, 1, '${kind}', 'queued', ${index + 50}, ${urgency}, ${rank}, 1, 1, 3, 1, 1);`,
    ).join("\n")}
    INSERT INTO tenants (id, name, slug, created_at, updated_at) VALUES (1, 'T', 't', 1, 1);
    INSERT INTO transcoding_attempts (id, job_id, attempt, idempotency_key, lease_hash, started_at) VALUES (1, 2, 1, 'k', '', 1);
    ${JOBS.map(
      (_, index) => `INSERT INTO assets
        (id, tenant_id, title, external_id, input_status, playback_status, playback_policy, source_key, created_at, updated_at)
        VALUES (${index + 1}, 1, 'A', 'a${index}', 'uploaded', 'processing', 'signed', 'k', 1, 1);`,
    ).join("\n")}`);
  old.close();
  await migrate({ url, migrations });
  const upgraded = bare(file);
  const jobs = upgraded.prepare("SELECT parts_require FROM transcoding_jobs ORDER BY id");
  expect(jobs.all([])).toEqual(JOBS.map(({ parts_require }) => ({ parts_require })));
  const tasks = (where: string) =>
    upgraded
      .prepare(
        `SELECT queue_position, kind, service_class, rank, requires FROM transcoding_tasks WHERE ${where} ORDER BY id`,
      )
      .all([]);
  expect(tasks("attempt_id IS NULL")).toEqual(
    JOBS.map(({ clip, joined, requires }, index) => ({
      queue_position: index + 40,
      kind: clip ? "clip" : joined ? "join" : "whole",
      service_class: "normal",
      rank: 0,
      requires,
    })),
  );
  expect(tasks("attempt_id = 1 AND status = 'queued'")).toEqual(
    TASKS.map(({ kind, service_class, rank }, index) => ({
      queue_position: index + 50,
      kind,
      service_class,
      rank: Math.max(0, rank),
      requires: kind === "chunk" ? '{"tasks":3}' : null,
    })),
  );
});

/** Attempts of before jobs consisted of tasks, and the task that each becomes. */
const ATTEMPTS = [
  { id: 3, key: "lost", hash: "a", outcome: "expired", task: { kind: "whole", known_as_job: 1, status: "failed" } },
  { id: 4, key: "planned", hash: "", outcome: "failed", task: { kind: "plan", known_as_job: 0, status: "failed" } },
  { id: 6, key: "continued 1", hash: "", outcome: "released", task: null },
  { id: 7, key: "live", hash: "b", outcome: null, task: { kind: "whole", known_as_job: 1, status: "running" } },
];

test("a job that a worker has leased during an upgrade keeps its lease, and used keys stay used", async () => {
  const file = join(folder(), "test.db");
  const url = `file:${file}`;
  await migrate({ url, migrations: before("0091") });
  const old = bare(file);
  const quoted = (value: string | null) => (value === null ? "NULL" : `'${value}'`);
  old.exec(`PRAGMA foreign_keys = OFF;
    INSERT INTO tenants (id, name, slug, created_at, updated_at) VALUES (1, 'T', 't', 1, 1);
    INSERT INTO assets (id, tenant_id, title, external_id, input_status, playback_status, playback_policy, source_key, created_at, updated_at)
      VALUES (1, 1, 'A', 'a', 'uploaded', 'processing', 'signed', 'k', 1, 1);
    INSERT INTO transcoding_jobs (tenant_id, asset_id, status, queue_position, position, attempt_id, worker_id, lease_expires_at, started_at,
        progressed_at, max_attempts, available_at, created_at, updated_at)
      VALUES (1, 1, 'running', 9, 5012, 7, 'w', 99, 60, 61, 3, 1, 1, 1);
    ${ATTEMPTS.map(
      ({ id, key, hash, outcome }) => `INSERT INTO transcoding_attempts
        (id, job_id, attempt, idempotency_key, lease_hash, worker_id, outcome, started_at)
        VALUES (${id}, 1, 1, '${key}', '${hash}', 'v', ${quoted(outcome)}, ${id});`,
    ).join("\n")}
    INSERT INTO callback_receipts VALUES (3, 'fail', 'h', 200, '{}', 1);
    INSERT INTO transcoding_tasks (id, tenant_id, job_id, attempt_id, kind, status, available_at, weight, max_attempts, created_at, updated_at)
      VALUES (20, 1, 1, 6, 'whole', 'canceled', 1, 98, 3, 1, 1);
    INSERT INTO task_leases (id, task_id, idempotency_key, lease_hash, started_at) VALUES (30, 20, 'task', 'c', 1);
    DELETE FROM task_leases; DELETE FROM transcoding_tasks;`);
  old.close();
  await migrate({ url, migrations });
  const upgraded = bare(file);
  const rows =
    upgraded.prepare(`SELECT task.attempt_id AS id, kind, known_as_job, status, idempotency_key AS key, lease_hash AS hash,
      outcome, task.lease_id = lease.id AS is_last FROM transcoding_tasks task JOIN task_leases lease ON task_id = task.id ORDER BY task.id`);
  expect(rows.all([])).toEqual(
    ATTEMPTS.flatMap(({ task, ...attempt }) => (task ? [{ ...attempt, ...task, is_last: 1 }] : [])),
  );
  const live = upgraded.prepare("SELECT * FROM transcoding_tasks WHERE status = 'running'").get([]);
  expect(live).toMatchObject({
    queue_position: 9,
    reached: 5012,
    lease_expires_at: 99,
    started_at: 60,
    progressed_at: 61,
    worker_id: "w",
  });
  expect(upgraded.prepare("SELECT attempt_id FROM callback_receipts").all([])).toEqual([{ attempt_id: 3 }]);
  // Deleted rows had higher ids than those that were left.
  const least = upgraded.prepare(
    "SELECT min(task.id) AS task, min(lease.id) AS lease FROM transcoding_tasks task, task_leases lease",
  );
  expect(least.all([])).toEqual([{ task: 23, lease: 33 }]);
  expect(upgraded.prepare("PRAGMA foreign_key_check").all([])).toEqual([]);
});
