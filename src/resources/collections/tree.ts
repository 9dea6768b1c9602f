import type { CollectionRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { Caller } from "../../http/caller.ts";
import { pacer } from "../../lib/pace.ts";
import { type CollectionCursor, cursorOf, listCollections } from "./queries.ts";
import { toCollection } from "./schema.ts";

const PAGE = 500;
type Below = Map<number | null, CollectionRow[]>;

/** The children of each collection (null: the roots), in the order of the list. */
async function readBelow(app: App, caller: Caller, tenantId: number | undefined): Promise<Below> {
  const below: Below = new Map([[null, []]]);
  const known = new Set<number>();
  const rows: CollectionRow[] = [];
  const pace = pacer();
  for (let after: CollectionCursor | undefined, more = true; more; ) {
    const page = await listCollections(app, caller, { tenantId, limit: PAGE, after });
    more = page.length > PAGE;
    for (const row of page.slice(0, PAGE)) {
      // A collection that was moved during the read would appear twice.
      if (known.has(row.id)) continue;
      known.add(row.id);
      rows.push(row);
      after = cursorOf(row);
    }
    await pace();
  }
  for (const row of rows) {
    // A collection whose parent was deleted during the read must not be lost.
    const parent = row.parentId !== null && known.has(row.parentId) ? row.parentId : null;
    const siblings = below.get(parent);
    if (siblings) siblings.push(row);
    else below.set(parent, [row]);
  }
  return below;
}

/** Serializes the tree as JSON without recursion: nesting is not limited, but the stack is. */
export async function* treeJson(app: App, caller: Caller, tenantId: number | undefined): AsyncGenerator<string> {
  const below = await readBelow(app, caller, tenantId);
  const trail = [{ rows: below.get(null) ?? [], next: 0 }];
  yield "[";
  for (let level = trail.at(-1); level; level = trail.at(-1)) {
    const row = level.rows[level.next];
    if (!row) {
      trail.pop();
      yield trail.length > 0 ? "]}" : "]";
      continue;
    }
    yield `${level.next > 0 ? "," : ""}${JSON.stringify(toCollection(row)).slice(0, -1)},"children":[`;
    level.next++;
    trail.push({ rows: below.get(row.id) ?? [], next: 0 });
  }
}
