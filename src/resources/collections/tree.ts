import type { CollectionRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { Caller } from "../../http/caller.ts";
import { pacer } from "../../lib/pace.ts";
import { listCollections, type Place, placeOf } from "./queries.ts";
import { toCollection } from "./schema.ts";

const PAGE = 500;
type Below = Map<number | null, CollectionRow[]>;

/** Those below each collection (null: the roots), all in the order of the list. */
async function readBelow(app: App, caller: Caller, tenantId: number | undefined): Promise<Below> {
  const below: Below = new Map([[null, []]]);
  const known = new Set<number>();
  const rows: CollectionRow[] = [];
  const pace = pacer();
  for (let after: Place | undefined, more = true; more; ) {
    const page = await listCollections(app.db, caller, { tenantId, limit: PAGE, after });
    more = page.length > PAGE;
    for (const row of page.slice(0, PAGE)) {
      // One that was moved while we read would stand here twice.
      if (known.has(row.id)) continue;
      known.add(row.id);
      rows.push(row);
      after = placeOf(row);
    }
    await pace();
  }
  for (const row of rows) {
    // Nor may one be lost whose parent was deleted while we read.
    const parent = row.parentId !== null && known.has(row.parentId) ? row.parentId : null;
    const siblings = below.get(parent);
    if (siblings) siblings.push(row);
    else below.set(parent, [row]);
  }
  return below;
}

/** The tree as JSON, without recursion: folders may lie as deep as anybody likes, and a stack is not as deep. */
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
