import type * as v from "valibot";
import { iso } from "#lib/base";
import { Time } from "#protocol/fields.ts";

/** `original_filename` → `originalFilename`: a field of the API, and its column. */
export type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;

export const camel = <Name extends string>(name: Name) =>
  name.replace(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase()) as Camel<Name>;

type RecordSchema = v.GenericSchema & { readonly entries: v.ObjectEntries };
type Entries<Schema extends RecordSchema> = Schema["entries"];
type Input<Schema extends RecordSchema> = { [Name in keyof v.InferInput<Schema>]: v.InferInput<Schema>[Name] };

type IsTime<Field> = Field extends typeof Time
  ? true
  : Field extends { wrapped: infer Inner }
    ? IsTime<Inner>
    : Field extends { pipe: readonly [infer First, ...unknown[]] }
      ? IsTime<First>
      : false;
/** What the column of a field contains: of times, milliseconds since the epoch. */
type Stored<Field extends v.GenericSchema> =
  IsTime<Field> extends true ? number | Extract<v.InferInput<Field>, null> : v.InferInput<Field>;
type OptionalNames<Schema extends RecordSchema> = {
  [Name in keyof Entries<Schema>]: Entries<Schema>[Name] extends { type: "optional" | "nullish" } ? Name : never;
}[keyof Entries<Schema>];
type Columns<Schema extends RecordSchema, Given> = {
  readonly [Name in Exclude<keyof Entries<Schema> & string, Given | OptionalNames<Schema>> as Camel<Name>]: Stored<
    Extract<Entries<Schema>[Name], v.GenericSchema>
  >;
};

type Field = { name: string; column: string; isTime: boolean; isOptional: boolean };
const known = new WeakMap<RecordSchema, Field[]>();

/**
 * The record of the API for a row: each field of `schema` is the column of the same name in camelCase, and a time an ISO 8601
 * text. `others` has the fields that differ from that; optional ones are only in it. The type checker finds a field
 * that is neither a column of the right type, nor in `others`.
 */
export function toRecord<Schema extends RecordSchema, Others extends Partial<Input<Schema>> = Record<never, never>>(
  schema: Schema,
  row: Columns<Schema, keyof Others>,
  others: Others = {} as Others,
): Input<Schema> {
  const record: Record<string, unknown> = {};
  for (const { name, column, isTime, isOptional } of fieldsOf(schema)) {
    if (Object.hasOwn(others, name)) record[name] = others[name as keyof Others];
    else if (!isOptional) record[name] = isTime ? iso(row[column as never]) : row[column as never];
  }
  return record as Input<Schema>;
}

function fieldsOf(schema: RecordSchema): Field[] {
  const fields = known.get(schema) ?? Object.entries(schema.entries).map(fieldOf);
  known.set(schema, fields);
  return fields;
}

const fieldOf = ([name, schema]: [string, unknown]): Field => ({
  name,
  column: camel(name),
  isTime: isTimeField(schema),
  isOptional: ["optional", "nullish"].includes((schema as v.GenericSchema).type),
});

function isTimeField(schema: unknown): boolean {
  if (schema === Time) return true;
  const { wrapped, pipe } = schema as { wrapped?: unknown; pipe?: readonly unknown[] };
  return (wrapped ?? pipe?.[0]) !== undefined && isTimeField(wrapped ?? pipe?.[0]);
}

/** The columns of what is given in a body, by the same rule; fields that are undefined are left out. */
export const toColumns = <Body extends object>(body: Body) =>
  Object.fromEntries(
    Object.entries(body).flatMap(([name, value]) => (value === undefined ? [] : [[camel(name), value]])),
  ) as { [Name in keyof Body as Name extends string ? Camel<Name> : never]: Exclude<Body[Name], undefined> };
