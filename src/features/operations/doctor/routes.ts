import * as v from "valibot";
import { iso } from "#lib/base";
import { Reply, route } from "#platform/http/route.ts";
import { Time } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import { FinishedAt, StartedAt, StatusField } from "#protocol/record-fields.ts";
import { CheckField, DetailField, OkField } from "../record-fields.ts";
import { type Checkup, lastCheckup, quickCheckup, runningCheckup, startCheckup } from "./checkup.ts";

const path = "/api/v1/admin/doctor";
const admin = { credential: "admin", tag: "Operator" } as const;

const Finding = v.object({
  check: CheckField,
  ok: OkField,
  detail: DetailField,
  fixed: v.pipe(v.number(), v.description("Number of problems fixed")),
  warning: v.optional(v.pipe(v.literal(true), v.description("Not a fault, but needs attention; see detail"))),
});
const CheckupResponse = v.pipe(
  v.object({
    fix: v.pipe(v.boolean(), v.description("Whether faults are fixed")),
    force: v.pipe(v.boolean(), v.description("Whether more than half of all objects may be moved to trash")),
    status: describedAs(StatusField, v.picklist(["running", "done", "failed"])),
    stage: v.pipe(v.string(), v.description("Current or last stage")),
    objects: v.pipe(v.number(), v.description("Objects checked in this stage")),
    ok: v.pipe(v.nullable(v.boolean()), v.description("Whether no fault remains; null while it runs")),
    findings: v.pipe(v.array(Finding), v.description("What was found")),
    started_at: StartedAt,
    finished_at: v.nullable(FinishedAt),
    server_time: v.pipe(Time, v.description("Time by the server's clock")),
  }),
  v.title("Checkup"),
);

const toAnswer = (checkup: Checkup, now: number): v.InferInput<typeof CheckupResponse> => ({
  fix: checkup.fix,
  force: checkup.force,
  status: checkup.status,
  stage: checkup.stage,
  objects: checkup.objects,
  ok: checkup.status === "running" ? null : checkup.findings.every((finding) => finding.ok),
  findings: checkup.findings,
  started_at: iso(checkup.startedAt),
  finished_at: iso(checkup.finishedAt),
  server_time: iso(now),
});

export const doctorRoutes = [
  route({
    ...admin,
    method: "GET",
    path,
    operationId: "runQuickChecks",
    summary: "Run the quick checks: database, storage, clock, permissions and disk",
    responses: { 200: v.object({ ok: OkField, findings: v.pipe(v.array(Finding), v.description("What was found")) }) },
    async handle({ app }) {
      const findings = await quickCheckup(app, { fix: false });
      return { ok: findings.every((finding) => finding.ok), findings };
    },
  }),
  route({
    ...admin,
    method: "POST",
    path: `${path}/checkup`,
    operationId: "startCheckup",
    summary: "Start a full check, optionally with fixes; returns the running check if there is one",
    body: v.object({
      fix: v.optional(v.pipe(v.boolean("must be true or false"), v.description("Fix what can be fixed")), false),
      force: v.optional(
        v.pipe(
          v.boolean("must be true or false"),
          v.description("With fix: move unreferenced objects to the trash even where they are more than half of all"),
        ),
      ),
    }),
    responses: { 202: CheckupResponse },
    errors: { 409: ["checkup_running"] },
    async handle({ app, body: { fix, force } }) {
      const wish = { fix, force: fix && force === true };
      // Writes only the audit entry, before any change.
      if (fix && !(await runningCheckup(app, wish))) await app.write(async () => {});
      const checkup = (await runningCheckup(app, wish)) ?? (await startCheckup(app, wish));
      return new Reply(202, toAnswer(checkup, app.clock.now()));
    },
  }),
  route({
    ...admin,
    method: "GET",
    path: `${path}/checkup`,
    operationId: "getCheckup",
    summary: "Get the progress of the running check, or the result of the last one; 204 without one",
    // No check has run yet: that is not an error.
    responses: { 200: CheckupResponse, 204: null },
    async handle({ app }) {
      const checkup = await lastCheckup(app);
      return checkup ? toAnswer(checkup, app.clock.now()) : new Reply(204, undefined);
    },
  }),
];
