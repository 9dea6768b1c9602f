import { join } from "node:path";
import { eq } from "drizzle-orm";
import * as v from "valibot";
import { HttpError, randomName } from "#lib/base";
import { STORE_KINDS } from "#model/enums.ts";
import { TOKEN_NAMES, writeSecret } from "#platform/config/secrets.ts";
import { Reply, route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { describedAs } from "#protocol/fields.ts";
import { KindField, NameField, StatusField, TokenField } from "#protocol/record-fields.ts";
import { sessions } from "#storage/db/schema.ts";
import { databaseResponds } from "../doctor/finding.ts";
import { CheckField, DetailField, OkField } from "../record-fields.ts";

const Finding = v.object({ check: CheckField, ok: OkField, detail: DetailField });
const ReplicaState = v.object({
  lag_seconds: v.pipe(v.number(), v.description("Age of the oldest change that is not in the replica")),
  error: v.pipe(v.nullable(v.string()), v.description("Why the replica cannot be written; null when it can")),
});
/** The reason may contain addresses, and this route needs no credential: it is in the log. */
const publicState = ({ lag_seconds, error }: v.InferOutput<typeof ReplicaState>) => ({
  lag_seconds,
  error: error && "The replica cannot be written; see the server's log.",
});
const admin = { credential: "admin", tag: "Operator" } as const;

export const operatorRoutes = [
  route({
    method: "GET",
    path: "/healthz",
    credential: "none",
    tag: "Health",
    operationId: "getHealth",
    summary: "Check that the process responds",
    responses: { 200: v.object({ status: describedAs(StatusField, v.literal("ok")) }) },
    handle: () => ({ status: "ok" }),
  }),
  route({
    method: "GET",
    path: "/readyz",
    credential: "none",
    tag: "Health",
    operationId: "getReadiness",
    summary: "Check that database and storage respond",
    responses: {
      200: v.object({
        status: describedAs(StatusField, v.literal("ready")),
        replica: v.optional(v.pipe(ReplicaState, v.description("The continuous backup; absent without one"))),
      }),
    },
    errors: { 503: ["not_ready"] },
    async handle({ app }) {
      if (app.stopping.aborted) throw new HttpError(503, "not_ready", "The server is stopping.");
      const faults = (await databaseResponds(app)).filter((finding) => !finding.ok);
      if (faults.length === 0) {
        const replica = await app.replica?.status();
        return { status: "ready", ...(replica && { replica: publicState(replica) }) };
      }
      app.log.warn({ faults }, "not ready");
      throw new HttpError(503, "not_ready", `Not ready: ${faults.map((fault) => fault.check).join(", ")}.`);
    },
  }),
  route({
    ...admin,
    method: "POST",
    path: "/api/v1/admin/storage/check",
    operationId: "checkStorage",
    summary: "Check the storage: credentials, bucket, a probe object, CORS, clock",
    responses: {
      200: v.object({
        ok: OkField,
        kind: describedAs(KindField, v.picklist(STORE_KINDS)),
        findings: v.pipe(v.array(Finding), v.description("What was found")),
      }),
    },
    errors: { 503: ["storage_not_configured"] },
    async handle({ app }) {
      const { kind, examine } = storageOf(app);
      const findings = await examine({ origin: new URL(app.baseUrl()).origin, now: new Date(app.clock.now()) });
      return { ok: findings.every((finding) => finding.ok), kind, findings };
    },
  }),
  route({
    ...admin,
    method: "POST",
    path: "/api/v1/admin/tokens/:name/rotate",
    operationId: "rotateToken",
    summary: "Rotate the admin, worker, live or metrics token",
    params: v.object({ name: describedAs(NameField, v.picklist(TOKEN_NAMES)) }),
    responses: { 200: v.object({ name: NameField, token: TokenField }) },
    errors: { 409: ["token_set_elsewhere"] },
    async handle({ app, params }) {
      const name = `${params.name}_token` as const;
      if (app.config[name] !== undefined) {
        throw new HttpError(
          409,
          "token_set_elsewhere",
          `The ${params.name} token comes from the settings (${app.config.origins[name]}); change it there.`,
        );
      }
      // Before the change, so that no crash can lose the audit entry or leave sessions of the old token.
      await app.write(async (tx) => {
        if (params.name === "admin") await tx.delete(sessions).where(eq(sessions.subject, "admin"));
      });
      const token = randomName(48);
      writeSecret(join(app.config.data_dir, "secrets", name), token);
      app.secrets[name] = token;
      app.signals.emit("secret.rotated", name);
      return new Reply(200, { name: params.name, token });
    },
  }),
];
