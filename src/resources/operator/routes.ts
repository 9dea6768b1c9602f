import { join } from "node:path";
import * as v from "valibot";
import { SECRET_NAMES, type SecretName, writeSecret } from "../../config/secrets.ts";
import { Reply, route } from "../../http/route.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError, notFound } from "../../lib/errors.ts";
import { randomName } from "../../lib/tokens.ts";
import { databaseAnswers } from "./doctor/finding.ts";

const Finding = v.object({ check: v.string(), ok: v.boolean(), detail: v.string() });
const admin = { credential: "admin", tag: "Operator" } as const;

export const operatorRoutes = [
  route({
    method: "GET",
    path: "/healthz",
    credential: "none",
    tag: "Health",
    summary: "Check that the process responds",
    responses: { 200: v.object({ status: v.literal("ok") }) },
    handle: () => ({ status: "ok" }),
  }),
  route({
    method: "GET",
    path: "/readyz",
    credential: "none",
    tag: "Health",
    summary: "Check that database and storage respond",
    responses: { 200: v.object({ status: v.literal("ready") }) },
    errors: { 503: ["not_ready"] },
    async handle({ app }) {
      if (app.stopping.aborted) throw new HttpError(503, "not_ready", "The server is stopping.");
      const faults = (await databaseAnswers(app)).filter((finding) => !finding.ok);
      if (faults.length === 0) return { status: "ready" };
      app.log.warn({ faults }, "not ready");
      throw new HttpError(503, "not_ready", `Not ready: ${faults.map((fault) => fault.check).join(", ")}.`);
    },
  }),
  route({
    ...admin,
    method: "POST",
    path: "/api/v1/admin/storage/check",
    summary: "Check the storage: credentials, bucket, a probe object, CORS, clock",
    responses: { 200: v.object({ ok: v.boolean(), kind: v.picklist(["local", "s3"]), findings: v.array(Finding) }) },
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
    summary: "Rotate the admin, worker or live token",
    params: v.object({ name: v.picklist(["admin", "worker", "live"]) }),
    responses: { 200: v.object({ name: v.string(), token: v.string() }) },
    errors: { 409: ["token_set_elsewhere"] },
    async handle({ app, params }) {
      const name = `${params.name}_token` as SecretName;
      if (!SECRET_NAMES.includes(name)) notFound("token");
      if (app.config[name] !== undefined) {
        throw new HttpError(
          409,
          "token_set_elsewhere",
          `The ${params.name} token comes from the settings (${app.config.origins[name]}); change it there.`,
        );
      }
      // Nothing but the audit log's entry: before the change, so that no crash can lose it.
      await app.write(async () => {});
      const token = randomName(48);
      writeSecret(join(app.config.data_dir, "secrets", name), token);
      app.secrets[name] = token;
      app.signals.emit("secret.rotated", name);
      return new Reply(200, { name: params.name, token });
    },
  }),
];
