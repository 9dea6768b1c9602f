import { createPublicKey } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isNightly } from "#test/support/amount.ts";
import { json, refused, succeeded } from "#test/support/commands/outcome.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { run, startServer } from "#test/support/process.ts";

/** What differs between two runs: ids, times and tokens. */
const settled = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (name, inner) =>
      /_at$/.test(name) && inner !== null ? "time" : ["token", "last_four"].includes(name) ? "secret" : inner,
    ),
  );

/**
 * The operator's commands, and each one's output, in order. The full tier tries what is refused without a server only: with
 * one, the same checks refuse it. Nor does it read the lists without entries, which the tests below fill.
 */
async function day(dataDir: string, isServed: boolean): Promise<unknown[]> {
  const at = ["--data", dataDir];
  const steps: unknown[] = [];
  const step = async (...args: string[]) => {
    // Settings come before or after the subcommand.
    const all = steps.length % 2 === 0 ? [...at, "admin", ...args] : ["admin", ...args, ...at];
    const answer = await json(all);
    steps.push(settled(answer));
    return answer;
  };
  const fails = async (code: 1 | 2, ...args: string[]) => {
    if (isServed && !isNightly) return;
    const sentence = (await refused(["admin", ...args, ...at], code)).replaceAll(dataDir, "DATA");
    if (isNightly) steps.push(sentence);
  };

  await step("tenant", "create", "--name", "Acme Inc.", "--slug", "acme");
  await step("tenant", "create", "--name", "F", "--slug", "free", "--plan", "free", "--playback-policy", "public");
  await fails(1, "tenant", "create", "--name", "Again", "--slug", "acme");
  await step("tenant", "update", "1", "--name", "Acme", "--plan", "starter", "--playback-policy", "public");
  const sites = "https://www.example.com, https://*.example.org";
  const framed = await step("tenant", "update", "acme", "--allowed-origins", sites);
  expect(JSON.stringify(framed)).toContain('["https://www.example.com","https://*.example.org"]');
  await fails(1, "tenant", "update", "acme", "--allowed-origins", "example.com");
  await step("tenant", "list");

  const key = await step("key", "issue", "--tenant", "acme", "--scopes", "assets:read, assets:write", "--name", "K");
  expect(key.token).toMatch(/^svc_[A-Za-z0-9]{40}$/);
  const short = await step("key", "issue", "--tenant", "1", "--expires-in", "30d");
  expect(Date.parse(short.expires_at) - Date.parse(short.created_at)).toBeGreaterThan(29.9 * 86_400_000);
  await fails(1, "key", "issue", "--tenant", "acme", "--scopes", "everything");
  await fails(1, "key", "issue", "--tenant", "free");
  const listed = await step("key", "list", "--tenant", "acme");
  expect(listed.map((each: { name: string }) => each.name)).toEqual(["SDK key", "K"]);
  expect(JSON.stringify(listed)).not.toContain(key.token);
  await step("key", "revoke", String(key.id));
  const [, revoked] = await step("key", "list", "--tenant", "acme");
  expect(revoked.revoked_at).not.toBe(null);

  const typing = (input: string, ...args: string[]) => json(["admin", ...args, "--password-stdin", ...at], { input });
  const email = "ann@example.com";
  steps.push(settled(await typing("correct horse\n", "user", "create", "--tenant", "acme", "--email", email)));
  await step("user", "list");
  if (isNightly) await step("user", "list", "--tenant", "free");
  steps.push(settled(await typing("another horse", "user", "passwd", email)));
  await fails(2, "user", "passwd", email);
  expect((await step("user", "role", email, "editor")).role).toBe("editor");
  await fails(1, "user", "role", email, "owner");
  const invited = await json([
    "admin",
    "user",
    "invite",
    "bob@example.com",
    "--tenant",
    "acme",
    "--role",
    "viewer",
    ...at,
  ]);
  expect(invited.url).toMatch(/\/console\/invitation\/\w{32}$/);
  await fails(1, "user", "invite", email, "--tenant", "acme", "--role", "viewer");
  await fails(2, "user", "invite", "carl@example.com", "--tenant", "acme");
  await fails(1, "user", "delete", "nobody@example.com");
  await step("user", "delete", email);
  const paired = await json(["admin", "device", "pair", "--tenant", "acme", ...at]);
  expect(paired.pairing_code).toMatch(/^\w{4}-\w{4}$/);
  await fails(1, "device", "pair", "--tenant", "nobody");
  if (isNightly) expect(await step("job", "list", "--state", "queued", "--tenant", "acme")).toEqual([]);
  await fails(1, "job", "show", "1");
  await fails(1, "job", "list", "--state", "done");
  const [used] = await step("usage", "--tenant", "free", "--month", "2026-01");
  expect(used).toMatchObject({
    tenant: "free",
    period_start: "2026-01-01T00:00:00.000Z",
    estimate: { total_minor: 0 },
  });
  await fails(1, "usage", "--month", "2026-13");

  const kept = ["--delete-sources-after-days", "30", "--delete-analytics-after-days", "never"];
  const keeping = await step("tenant", "update", "acme", ...kept);
  expect(keeping).toMatchObject({ delete_sources_after_days: 30, delete_analytics_after_days: null });
  await fails(2, "tenant", "update", "acme", "--delete-sources-after-days", "soon");
  await fails(1, "tenant", "update", "acme", "--delete-sources-after-days", "0");
  expect(await step("tenant", "update", "acme", "--delete-sources-after-days", "never")).toMatchObject({
    delete_sources_after_days: null,
  });
  if (isNightly) expect(await step("asset", "list", "--tenant", "acme")).toEqual([]);
  if (isNightly) expect(await step("upload", "list", "--tenant", "acme", "--status", "pending")).toEqual([]);
  await fails(1, "asset", "show", "1");
  await fails(2, "asset", "delete", "1");

  await step("tenant", "suspend", "acme");
  await step("tenant", "show", "acme");
  return steps;
}

test("an operator's commands have the same results with a server and without", async () => {
  const alone = emptyFolder();
  const served = emptyFolder();
  // The settings' own tokens would differ from those in the data directory, which `admin` reads.
  const server = await startServer(served, { env: { VODBOX_ADMIN_TOKEN: "" } });
  const [without, withServer] = await Promise.all([day(alone, false), day(served, true)]);
  expect(withServer).toEqual(without);
  expect(server.stderr()).toBe("");
});

test("a table contains what the JSON contains; a new token is shown once, with a warning", async () => {
  const at = ["--data", emptyFolder()];
  const created = await succeeded(["admin", "tenant", "create", "--name", "A\u001b[31m", "--slug", "a", ...at]);
  expect(created.stdout).toMatch(/^slug +a$/m);
  expect(created.stdout).not.toContain("\u001b");
  const issued = await succeeded(["admin", "key", "issue", "--tenant", "a", ...at]);
  const token = /^token +(svc_\w{40})$/m.exec(issued.stdout)?.[1] as string;
  expect(issued.stdout).toContain("Save the token now; it is not shown again.");
  const listed = await succeeded(["admin", "key", "list", "--tenant", "a", ...at]);
  expect(listed.stdout).toMatch(/^ID +NAME +SCOPES +ENDS IN/);
  expect(listed.stdout).toContain(token.slice(-4));
  expect(listed.stdout).not.toContain(token);
  expect((await succeeded(["admin", "key", "list", "--tenant", "1", ...at])).stdout).toBe(listed.stdout);
  const used = await succeeded(["admin", "usage", "--month", "2026-01", ...at]);
  expect(used.stdout).toMatch(/^ID +TENANT +PLAN +MONTH .*\n1 +a +pro +2026-01 +0 B +0 B +0 +0 +USD\W0\.00\s*$/);
  expect((await succeeded(["admin", "job", "list", ...at])).stdout).toBe("None.\n");
});

test("signing keys are generated, registered, listed and revoked; the private key is shown once", async () => {
  const dataDir = emptyFolder();
  const at = ["--data", dataDir];
  const signing = (...args: string[]) => ["admin", "signing-key", ...args, ...at];
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", ...at]);
  const made = await succeeded(signing("create", "--tenant", "a", "--name", "Backend", "--algorithm", "EdDSA"));
  const privateKey = /^private_key +(LS0t[\w+/=]+)$/m.exec(made.stdout)?.[1] as string;
  expect(made.stdout).toContain("Save the private key now");
  const publicKey = createPublicKey(Buffer.from(privateKey, "base64").toString()).export({
    type: "spki",
    format: "pem",
  });
  writeFileSync(join(dataDir, "own.pem"), publicKey);
  const own = await json(signing("create", "--tenant", "1", "--public-key", join(dataDir, "own.pem")));
  expect(own).toMatchObject({ algorithm: "EdDSA", public_key: publicKey, name: "Signing key" });
  expect(own).not.toHaveProperty("private_key");
  await refused(signing("create", "--tenant", "a", "--public-key", join(dataDir, "none.pem")), 1);
  expect((await succeeded(signing("revoke", "1"))).stdout).toBe("Signing key 1 is revoked.\n");
  const listed = await succeeded(signing("list", "--tenant", "a"));
  expect(listed.stdout).toMatch(
    /^ID +KEY ID +NAME +ALGORITHM +CREATED +REVOKED *\n2 +sk_\w{22} +Signing key +EdDSA +(now|\d+ seconds? ago) +– *\n1 +sk_\w{22} +Backend +EdDSA +(now|\d+ seconds? ago) +(now|\d+ seconds? ago) *\n$/,
  );
});

test("several concurrent commands wait for each other, also after a killed server", async () => {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir);
  server.child.kill("SIGKILL");
  await server.ended;
  const made = await Promise.all(
    ["a", "b", "c", "d"].map((slug) =>
      json(["admin", "tenant", "create", "--name", slug, "--slug", slug, "--data", dataDir]),
    ),
  );
  expect(made.map((tenant) => tenant.id).sort()).toEqual([1, 2, 3, 4]);
});

test("a revoked key and a suspended tenant are refused by the running server from the next request on", async () => {
  const server = await startServer(emptyFolder(), { env: { VODBOX_ADMIN_TOKEN: "" } });
  const at = ["--data", server.dataDir];
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", ...at]);
  const issue = () => json(["admin", "key", "issue", "--tenant", "a", ...at]);
  const [one, two] = await Promise.all([issue(), issue()]);
  const asks = async (key: { token: string }) => (await server.as(key.token).listAssets()).status;
  expect([await asks(one), await asks(two)]).toEqual([200, 200]);
  await run(["admin", "key", "revoke", String(one.id), ...at]);
  expect([await asks(one), await asks(two)]).toEqual([401, 200]);
  await run(["admin", "tenant", "suspend", "a", ...at]);
  expect([await asks(one), await asks(two)]).toEqual([401, 401]);
  await run(["admin", "tenant", "suspend", "a", "--undo", ...at]);
  expect([await asks(one), await asks(two)]).toEqual([401, 200]);
});

test("jobs are listed, shown, canceled and retried", async () => {
  const server = await startServer(emptyFolder(), { env: { VODBOX_ADMIN_TOKEN: "" } });
  const at = ["--data", server.dataDir];
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", ...at]);
  const { token } = await json(["admin", "key", "issue", "--tenant", "a", "--scopes", "assets:write", ...at]);
  const { asset, job } = await uploaded(server, token);
  const ask = (verb: string, ...args: string[]) => json(["admin", "job", verb, ...args, ...at]);
  const listed = { ...job, asset: { external_id: asset.external_id, title: asset.title } };
  expect(await ask("list", "--tenant", "a", "--state", "queued")).toEqual([listed]);
  const tasks = { total: 0, queued: 0, running: 0, completed: 0, failed: 0 };
  expect(await ask("show", String(job.id))).toEqual({ ...listed, log_tail: null, tasks, uncuttable: null });
  expect(await ask("prioritize", String(job.id))).toMatchObject({ id: job.id, priority: 100 });
  expect(await ask("list", "--state", "running")).toEqual([]);
  expect(await ask("cancel", String(job.id))).toMatchObject({ id: job.id, status: "canceled" });
  // A job that ended without success is not a success for a command that waits for it.
  expect(await run(["admin", "job", "show", String(job.id), "--follow", ...at])).toMatchObject({ code: 1, stderr: "" });
  expect(await ask("retry", String(job.id))).toMatchObject({ id: job.id, status: "queued" });
  expect(await refused(["admin", "job", "retry", String(job.id), ...at], 1)).toContain("The job is queued");
  const table = (await succeeded(["admin", "job", "list", ...at])).stdout;
  expect(table).toMatch(/^ID +TENANT +ASSET +STATUS +ATTEMPT/);
  expect(table).toMatch(new RegExp(`^${job.id} +1 +${asset.id} +queued +0/5`, "m"));
  const shown = (await succeeded(["admin", "job", "show", String(job.id), ...at])).stdout;
  expect(shown).toMatch(/^status +queued$/m);
  expect(shown).toMatch(new RegExp(`^asset +clip \\(${asset.external_id}\\)$`, "m"));
});

test("assets are listed, shown, published, retried and deleted, and uploads are listed", async () => {
  const server = await startServer(emptyFolder(), { env: { VODBOX_ADMIN_TOKEN: "" } });
  const at = ["--data", server.dataDir];
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", ...at]);
  const { token } = await json(["admin", "key", "issue", "--tenant", "a", "--scopes", "assets:write", ...at]);
  const first = await uploaded(server, token);
  const second = await uploaded(server, token);
  const [one, two] = [first.asset.id, second.asset.id].map(String) as [string, string];
  const ask = (verb: string, ...args: string[]) => json(["admin", "asset", verb, ...args, ...at]);
  const listed = await ask("list", "--tenant", "a", "--status", "processing");
  expect(listed.map(({ id }: { id: number }) => String(id))).toEqual([two, one]);
  expect(await ask("show", one)).toMatchObject({ id: first.asset.id, playback_policy: "signed" });
  expect(await ask("policy", one, "public")).toMatchObject({ playback_policy: "public" });
  await refused(["admin", "asset", "policy", one, "private", ...at], 1);
  await json(["admin", "job", "cancel", String(first.job.id), ...at]);
  expect(await ask("retry", one)).toMatchObject({ id: first.asset.id, playback_status: "processing" });
  expect(await refused(["admin", "asset", "retry", two, ...at], 1)).toContain("only assets whose last job failed");
  const table = (await succeeded(["admin", "asset", "list", ...at])).stdout;
  expect(table).toMatch(/^ID +TENANT +TITLE +STATUS +POLICY/);
  expect(table).toMatch(new RegExp(`^${one} +1 +clip +processing +public +0 s +18 B`, "m"));
  expect((await succeeded(["admin", "asset", "show", one, ...at])).stdout).toMatch(/^playback_policy +public$/m);
  const uploads = await json(["admin", "upload", "list", "--status", "completed", ...at]);
  expect(uploads.map(({ id }: { id: number }) => id)).toEqual([second.upload.id, first.upload.id]);
  expect((await succeeded(["admin", "upload", "list", ...at])).stdout).toMatch(/^ID +TENANT +ASSET +FILENAME +STATUS/);

  expect(await refused(["admin", "asset", "delete", one, ...at], 2)).toContain("--yes");
  const both = await run(["admin", "asset", "delete", one, "999", "--yes", ...at]);
  expect([both.code, both.stdout]).toEqual([1, `Asset ${one} is deleted.\nAsset 999: No such asset.\n`]);
  expect(await ask("delete", two, "--yes")).toEqual({ applied: [second.asset.id], errors: [] });
  expect(await ask("list")).toEqual([]);
});
