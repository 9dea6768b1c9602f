import { type App, forApp } from "#app.ts";
import { CommitCache } from "#storage/db/commit-cache.ts";
import type { Arguments, PreparedFor } from "#storage/db/prepared.ts";

const pages = forApp((app) => new CommitCache<string, unknown[]>(app.commits));

/**
 * The rows of a page of a list, which are kept until the next commit, because consoles and importers request the same
 * pages again and again. `args` contains the tenant whose rows the caller may access, so that no other caller receives
 * them. Where a commit of another server is not visible immediately, nothing is kept: what a client has created through
 * one server must be in the list of another. The caller must not change the rows.
 */
export const readPage = <Name extends string, Row>(
  app: App,
  query: PreparedFor<Name, Row[]>,
  args: Arguments<Name>,
): Promise<Row[]> => {
  const read = () => query(app.db, args).all();
  return app.commits.isLate ? read() : (pages(app).get(`${query.id} ${JSON.stringify(args)}`, read) as Promise<Row[]>);
};
