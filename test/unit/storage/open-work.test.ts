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
  const jobs = upgraded.prepare("SELECT queue_position, requires, parts_require FROM transcoding_jobs ORDER BY id");
  expect(jobs.all([])).toEqual(
    JOBS.map(({ requires, parts_require }, index) => ({ queue_position: index + 40, requires, parts_require })),
  );
  const tasks = upgraded.prepare(
    "SELECT queue_position, kind, service_class, rank, requires FROM transcoding_tasks ORDER BY id",
  );
  expect(tasks.all([])).toEqual(
    TASKS.map(({ kind, service_class, rank }, index) => ({
      queue_position: index + 50,
      kind,
      service_class,
      rank: Math.max(0, rank),
      requires: kind === "chunk" ? '{"tasks":3}' : null,
    })),
  );
});
