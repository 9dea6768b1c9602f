import { join } from "node:path";
import { expect, test } from "vitest";
import type { StoreKind } from "#model/enums.ts";
import { loadConfig } from "#platform/config/load.ts";
import { storesOf } from "#platform/config/stores.ts";
import { UserError } from "#src/lib/base/errors.ts";
import { embeddedMigrations } from "#src/lib/executable/embedded.ts";
import { migrate } from "#storage/db/migrate.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { bare } from "#test/support/storage/database.ts";

test("the database leaves the kinds of storage and the payment providers to the program, with all earlier rows", async () => {
  const url = `file:${join(emptyFolder(), "test.db")}`;
  const all = embeddedMigrations();
  await migrate({ url, migrations: all.filter(({ name }) => name < "0024") });
  const database = bare(url.slice("file:".length));
  const order = (id: number, provider: string) =>
    database.exec(`INSERT INTO billing_orders VALUES (${id}, 'o${id}', 1, 'pro', 4900, 'EUR', '${provider}', 'paid', 'key:1',
      'k${id}', 'hash', 'https://example.com/', 0, 'p${id}', null, 1, 2, 3, 4)`);
  database.exec(`
    INSERT INTO tenants (id, name, slug, created_at, updated_at) VALUES (1, 'A', 'a', 0, 0);
    INSERT INTO storage_place VALUES (1, 's3', 'local', 'draining', 0, 1, 'tenants/1/x', 9, 90, 4, 40, 3, 30, 2, 1, null, 5, 6, null, 7)`);
  order(7, "stripe");
  expect(() => order(8, "cash")).toThrow(/CHECK/);
  const rows = () =>
    ["storage_place", "billing_orders"].map((table) => database.prepare(`SELECT * FROM ${table}`).all([]));
  const before = rows();
  await migrate({ url, migrations: all });
  expect(rows()).toEqual(before);
  order(8, "cash");
  database.exec("UPDATE storage_place SET other = 'tape'");
  expect(() => database.exec("UPDATE storage_place SET other = active")).toThrow(/CHECK/);
  expect(() => order(7, "stripe")).toThrow(/UNIQUE/);
});

const COPIED =
  "created_at, actor, key_id, tenant_id, address, operator, method, route, target_type, target_id, fields, request_id";

test("the database leaves the actors of the audit log to the program, with all earlier entries", async () => {
  const url = `file:${join(emptyFolder(), "test.db")}`;
  const all = embeddedMigrations();
  await migrate({ url, migrations: all.filter(({ name }) => name < "0029") });
  const database = bare(url.slice("file:".length));
  const entry = (id: number, actor: string) =>
    database.exec(`INSERT INTO audit_entries (id, created_at, actor, key_id, tenant_id, address, operator, method, route,
      target_type, target_id, fields, request_id)
      VALUES (${id}, 5, '${actor}', 2, 3, '::1', 'ann', 'PUT', '/x', 'assets', '9', '["title"]', 'req_1')`);
  entry(7, "admin");
  expect(() => entry(8, "system")).toThrow(/CHECK/);
  const rows = () => database.prepare("SELECT * FROM audit_entries WHERE id = 7").all([]) as object[];
  const before = rows();
  await migrate({ url, migrations: all });
  // Columns of later versions.
  const later = { user_id: null, actor_name: "operator", action: "PUT /x" };
  expect(rows()).toEqual(before.map((row) => ({ ...row, ...later })));
  entry(8, "system");
  database.exec("DELETE FROM audit_entries WHERE id = 8");
  // An id is never used twice.
  const next = database.prepare(
    `INSERT INTO audit_entries (${COPIED}) SELECT ${COPIED} FROM audit_entries WHERE id = 7 RETURNING id`,
  );
  expect(next.all([])).toEqual([{ id: 9 }]);
});

test("storage of a kind that another version recorded is refused, not opened as another kind", async () => {
  const config = loadConfig({ flags: { data_dir: emptyFolder() }, env: {} });
  const open = storesOf(config, { signingSecret: "secret", baseUrl: () => "" });
  for (const kind of ["tape", "toString"] as string[] as StoreKind[])
    await expect(open(kind)).rejects.toThrow(
      new UserError(`Objects are in ${kind} storage, which this version of vodbox does not support.`),
    );
});
