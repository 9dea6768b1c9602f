import { Column, getTableName, is, noopDecoder, SQL, Subquery } from "drizzle-orm";

/** The columns and expressions of a query in order, as drizzle passes them to its dialect and to prepared queries. */
export type Fields = readonly {
  readonly path: readonly string[];
  readonly field: Column | SQL | SQL.Aliased | Subquery;
}[];

/** Tables that an outer join may leave without a row are false. */
type NotNullable = Readonly<Record<string, boolean>>;

type Decoder = { mapFromDriverValue(value: unknown): unknown };
type Target = { group: string | null; name: string; decoder: Decoder | null };
type Row = Record<string, unknown>;
/** A nested object: null when its first column is, unless its columns are of several tables. */
type Group = { name: string; template: Row; first: number; table: string | null };

/**
 * What drizzle computes for each query again, once for each list of columns: the SQL of the selection, which takes 90 %
 * of the time to build a query for a wide table, and how a result becomes an object.
 */
export class Selection {
  readonly #targets: Target[] = [];
  readonly #template: Row;
  readonly #groups: Group[] = [];
  /** The names of all tables if it consists of columns only; else null. */
  readonly tables: ReadonlySet<string> | null;
  /** SQL of the selection; drizzle names the table of a column only where there are several. */
  readonly sql: { single?: SQL; joined?: SQL } = {};

  constructor(fields: Fields) {
    const columns = fields.flatMap(({ field }) => (is(field, Column) ? [field] : []));
    this.tables = columns.length === fields.length ? new Set(columns.map(({ table }) => getTableName(table))) : null;
    const names: string[] = [];
    const groups = new Map<string, Group & { names: string[] }>();
    for (const [index, { path, field }] of fields.entries()) {
      const [first = "", second] = path;
      this.#targets.push({
        group: second === undefined ? null : first,
        name: second ?? first,
        decoder: decoderOf(field),
      });
      if (second === undefined) {
        names.push(first);
        continue;
      }
      const table = is(field, Column) ? getTableName(field.table) : null;
      const group = groups.get(first) ?? { name: first, template: {}, first: index, table, names: [] };
      if (table !== null && group.table !== table) group.table = null;
      group.names.push(second);
      if (!groups.has(first)) names.push(first);
      groups.set(first, group);
    }
    this.#template = templateOf(names);
    this.#groups = [...groups.values()].map(({ names: ofGroup, ...group }) => ({
      ...group,
      template: templateOf(ofGroup),
    }));
  }

  /** Result rows as drizzle maps them. */
  rows(results: readonly (readonly unknown[])[], notNullable: NotNullable | undefined): Row[] {
    return results.map((values) => this.row(values, notNullable));
  }

  row(values: readonly unknown[], notNullable: NotNullable | undefined): Row {
    const row = { ...this.#template };
    for (const { name, template } of this.#groups) row[name] = { ...template };
    const targets = this.#targets;
    for (let i = 0; i < targets.length; i++) {
      const value = values[i];
      if (value === null) continue;
      const { group, name, decoder } = targets[i] as Target;
      const object = group === null ? row : (row[group] as Row);
      const plain = value instanceof ArrayBuffer ? Buffer.from(value) : value;
      object[name] = decoder === null ? plain : decoder.mapFromDriverValue(plain);
    }
    if (notNullable !== undefined)
      for (const { name, first, table } of this.#groups)
        if (table !== null && values[first] === null && !notNullable[table]) row[name] = null;
    return row;
  }
}

/** Null where the value is used as it is. */
function decoderOf(field: Fields[number]["field"]): Decoder | null {
  const { decoder } = (is(field, SQL.Aliased) ? field.sql : is(field, Subquery) ? field._.sql : { decoder: field }) as {
    decoder: Decoder | SQL;
  };
  const found = (is(decoder, SQL) ? (decoder as unknown as { decoder: Decoder }).decoder : decoder) as Decoder;
  const isPlain = found === noopDecoder || found.mapFromDriverValue === Column.prototype.mapFromDriverValue;
  return isPlain ? null : found;
}

/**
 * An object with all properties. Copies of an object from JSON keep its hidden class; V8 stores objects of more than twelve
 * properties that are added by computed names as hash tables, which take four times as long to fill.
 */
const templateOf = (names: readonly string[]): Row =>
  JSON.parse(`{${names.map((name) => `${JSON.stringify(name)}:null`).join(",")}}`) as Row;

/** Selections that begin with the same column. There are as many as places in the program that select them. */
const MAX_OF_COLUMN = 64;
const byFirst = new WeakMap<object, { fields: Fields; selection: Selection }[]>();

/** The selection of `fields`, the same one for the same columns. Null: nested deeper than it supports. */
export function selectionOf(fields: Fields): Selection | null {
  const first = fields[0]?.field;
  if (first === undefined || fields.some(({ path }) => path.length > 2)) return null;
  const known = byFirst.get(first) ?? [];
  for (const each of known) if (isSame(each.fields, fields)) return each.selection;
  const selection = new Selection(fields);
  // Expressions are created by each query again.
  if (selection.tables !== null && known.length < MAX_OF_COLUMN) byFirst.set(first, [...known, { fields, selection }]);
  return selection;
}

function isSame(left: Fields, right: Fields): boolean {
  if (left.length !== right.length) return false;
  for (let i = 0; i < left.length; i++) {
    const a = left[i] as Fields[number];
    const b = right[i] as Fields[number];
    if (a.field !== b.field || a.path.length !== b.path.length) return false;
    if (a.path[0] !== b.path[0] || a.path[1] !== b.path[1]) return false;
  }
  return true;
}
