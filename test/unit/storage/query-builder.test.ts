import { join } from "node:path";
import { and, desc, eq, getTableColumns, isNull, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/libsql";
import { alias, blob, integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { expect, onTestFinished, test } from "vitest";
import { type Db, openDatabase } from "#storage/db/open.ts";
import { folder } from "#test/support/storage/database.ts";

const authors = sqliteTable("authors", {
  id: integer("id").primaryKey(),
  fullName: text("full_name").notNull(),
  isActive: integer("is_active", { mode: "boolean" }),
  tags: text("tags", { mode: "json" }).$type<string[]>().notNull().default([]),
});
const books = sqliteTable("books", {
  id: integer("id").primaryKey(),
  authorId: integer("author_id"),
  title: text("title").notNull(),
  price: real("price"),
  cover: blob("cover", { mode: "buffer" }),
  at: integer("at", { mode: "timestamp_ms" }),
});

const TABLES = `
  CREATE TABLE authors (id INTEGER PRIMARY KEY, full_name TEXT NOT NULL, is_active INTEGER, tags TEXT NOT NULL);
  CREATE TABLE books (id INTEGER PRIMARY KEY, author_id INTEGER, title TEXT NOT NULL, price REAL, cover BLOB, at INTEGER);
  INSERT INTO authors VALUES (1, 'Ada', 1, '["a","b"]'), (2, 'Bea', 0, '[]'), (3, 'Cleo', NULL, '[]');
  INSERT INTO books VALUES (1, 1, 'One', 1.5, x'0102', 1000), (2, 1, 'Two', NULL, NULL, NULL), (3, NULL, 'None', 0, x'', 0)`;

/** The same file with our queries and with drizzle's own. */
async function both() {
  const url = `file:${join(folder(), "books.db")}`;
  const ours = await openDatabase({ url });
  await ours.write(async (tx) => {
    for (const statement of TABLES.split(";")) await tx.run(sql.raw(statement));
  });
  const theirs = drizzle(url);
  onTestFinished(async () => {
    await ours.close();
    theirs.$client.close();
  });
  return { ours, theirs: theirs as unknown as Db };
}

const writer = alias(authors, "writer");
const QUERIES = {
  "a whole table": (db: Db) => db.select().from(books).orderBy(desc(books.id)),
  "some columns": (db: Db) => db.select({ name: authors.fullName, isActive: authors.isActive }).from(authors),
  "the same columns by other names": (db: Db) =>
    db.select({ isActive: authors.fullName, name: authors.isActive }).from(authors),
  "an expression": (db: Db) =>
    db.select({ id: books.id, n: sql<number>`${books.price} * 2`.mapWith(String) }).from(books),
  "a named expression": (db: Db) =>
    db
      .select({ n: sql<number>`count(*)`.as("n"), author: books.authorId })
      .from(books)
      .groupBy(books.authorId),
  "an inner join": (db: Db) => db.select().from(books).innerJoin(authors, eq(authors.id, books.authorId)),
  "an outer join without a row": (db: Db) =>
    db.select({ book: books, author: authors }).from(books).leftJoin(authors, eq(authors.id, books.authorId)),
  "part of an outer join": (db: Db) =>
    db
      .select({
        id: books.id,
        author: { tags: authors.tags, id: authors.id },
        mixed: { a: authors.id, b: books.title },
      })
      .from(books)
      .leftJoin(authors, eq(authors.id, books.authorId)),
  "the other outer join": (db: Db) => db.select().from(books).rightJoin(authors, eq(authors.id, books.authorId)),
  "an alias": (db: Db) => db.select({ name: writer.fullName }).from(writer).where(isNull(writer.isActive)),
  "a subquery": (db: Db) => {
    const dear = db.select({ id: books.id, price: books.price }).from(books).where(sql`${books.price} > 1`).as("dear");
    return db.select({ id: dear.id, price: dear.price }).from(dear);
  },
  "columns of an expression": (db: Db) => db.select({ id: sql`${books.id}` }).from(sql`${books} NOT INDEXED`),
  "no rows": (db: Db) =>
    db
      .select()
      .from(books)
      .where(and(eq(books.id, 9), eq(books.title, "x"))),
} satisfies Record<string, (db: Db) => { all(): Promise<unknown>; get(): Promise<unknown>; toSQL(): unknown }>;

test.each(Object.entries(QUERIES))(
  "%s: the SQL and the rows are those of drizzle, also the second time",
  async (_, query) => {
    const { ours, theirs } = await both();
    for (let times = 0; times < 2; times++) {
      expect(query(ours.db).toSQL()).toEqual(query(theirs).toSQL());
      expect(await query(ours.db).all()).toEqual(await query(theirs).all());
      expect(await query(ours.db).get()).toEqual(await query(theirs).get());
    }
  },
);

test("rows that a change returns, and a placeholder", async () => {
  const { ours, theirs } = await both();
  const changed = await ours.write(async (tx) => [
    await tx
      .insert(books)
      .values({ id: 4, title: "New", at: new Date(5) })
      .returning()
      .get(),
    await tx
      .update(books)
      .set({ price: 2 })
      .where(eq(books.id, 4))
      .returning({ id: books.id, price: books.price })
      .all(),
    await tx.update(books).set({ price: 3 }).where(eq(books.id, 9)).returning().get(),
  ]);
  const added = { id: 4, authorId: null, title: "New", price: null, cover: null, at: new Date(5) };
  expect(changed).toEqual([added, [{ id: 4, price: 2 }], undefined]);
  for (const db of [ours.db, theirs]) {
    const byId = db
      .select()
      .from(books)
      .where(eq(books.id, sql.placeholder("id")))
      .prepare();
    expect(await byId.get({ id: 4 })).toEqual({ ...added, price: 2 });
    expect(await byId.values({ id: 9 })).toEqual([]);
    await expect(byId.get({})).rejects.toThrow("placeholder");
  }
});

test("a column of a table that is not part of the query is reported, also after a query that contains it", async () => {
  const { ours } = await both();
  await ours.db.select(getTableColumns(authors)).from(authors).all();
  expect(() => ours.db.select(getTableColumns(authors)).from(books).toSQL()).toThrow("not part of the query");
});

test("an error names the statement and has the one of SQLite as its cause", async () => {
  const { ours } = await both();
  const fails = ours.db.select({ id: sql`nothing` }).from(books);
  await expect(fails.all()).rejects.toMatchObject({
    message: expect.stringContaining("select nothing"),
    cause: { code: "SQLITE_ERROR" },
  });
  await expect(ours.db.run(sql`nothing`)).rejects.toMatchObject({ cause: { code: "SQLITE_ERROR" } });
});
