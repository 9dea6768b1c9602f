/**
 * A remote server's parser accepts less than SQLite's own. Statements in released migrations that it refuses, and
 * equivalents that it accepts: migrations themselves never change.
 */
const REWRITTEN: Record<string, readonly [from: string, to: string][]> = {
  // HAVING without GROUP BY is not supported. Grouping by a constant makes one group of all rows, and none of no rows:
  // the condition is then always true.
  "0004_analytics.sql": [["HAVING min(hour) IS NOT NULL", "GROUP BY new.tenant_id HAVING min(hour) IS NOT NULL"]],
};

/** The migration for a remote libSQL server. Throws when a text to replace does not occur exactly once. */
export function remoteSql({ name, sql }: { name: string; sql: string }): string {
  return (REWRITTEN[name] ?? []).reduce((text, [from, to]) => {
    if (text.split(from).length !== 2) throw new Error(`${name} does not hold once: ${from}`);
    return text.replace(from, to);
  }, sql);
}
