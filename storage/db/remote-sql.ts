/**
 * A remote server's parser takes less than SQLite's own. What it refuses in released migrations, and the same in words
 * that it takes: migrations themselves never change.
 */
const REWRITTEN: Record<string, readonly [from: string, to: string][]> = {
  // No HAVING without GROUP BY. A constant makes one group of all rows, and none of none: the condition is then always true.
  "0004_analytics.sql": [["HAVING min(hour) IS NOT NULL", "GROUP BY new.tenant_id HAVING min(hour) IS NOT NULL"]],
};

/** The migration as a remote libSQL server is given it. Throws when what is to be replaced is not there once. */
export function remoteSql({ name, sql }: { name: string; sql: string }): string {
  return (REWRITTEN[name] ?? []).reduce((text, [from, to]) => {
    if (text.split(from).length !== 2) throw new Error(`${name} does not hold once: ${from}`);
    return text.replace(from, to);
  }, sql);
}
