import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/**
 * Reads the types of Mux's client from its declarations, and the paths of its methods from its code, to check responses while
 * they are received. Both are generated from Mux's OpenAPI document, so they have one form: a field is a line.
 */

const resources = join(dirname(createRequire(import.meta.url).resolve("@mux/mux-node")), "resources");
const FILES: readonly string[] = [
  ...["video/assets", "video/uploads", "video/live-streams", "video/playback-ids", "video/playback-restrictions"],
  ...["video/delivery-usage", "system/signing-keys", "data/metrics", "shared"],
];
/** The types of events. Its one method sends no request. */
const EVENTS = "webhooks/webhooks";

type Field = { type: string; isOptional: boolean };
/** What a file declares: the fields of interfaces, and types that have another name, by their names with those of namespaces. */
type Declared = {
  interfaces: Map<string, Map<string, Field>>;
  aliases: Map<string, string>;
  imports: Map<string, string>;
};
/** `type` of what `data` is; with `isWhole` of the whole response. */
export type Method = { name: string; method: string; path: RegExp; type: string; file: string; isWhole: boolean };

const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\//g, "");

function declaredIn(file: string): Declared {
  const declared: Declared = { interfaces: new Map(), aliases: new Map(), imports: new Map() };
  const scopes: { name: string; fields: Map<string, Field> | null }[] = [];
  const nameIn = (name: string) => [...scopes.map((scope) => scope.name), name].join(".");
  for (const line of withoutComments(readFileSync(join(resources, `${file}.d.ts`), "utf8")).split("\n")) {
    const [, alias, from] = /^import \* as (\w+) from "(.+)\.js";/.exec(line) ?? [];
    if (alias && from) declared.imports.set(alias, join(dirname(file), from));
    const [, kind, opened] = /^\s*(?:export )?(?:declare )?(interface|namespace|class) (\w+)\b.*\{$/.exec(line) ?? [];
    const [, renamed, type] = /^\s*(?:export )?type (\w+) = (.+);$/.exec(line) ?? [];
    const [, field, optional, of] = /^\s*(\w+)(\?)?: (.+);$/.exec(line) ?? [];
    if (kind && opened) {
      const fields = kind === "interface" ? new Map<string, Field>() : null;
      if (fields) declared.interfaces.set(nameIn(opened), fields);
      scopes.push({ name: opened, fields });
    } else if (/^\s*\}$/.test(line)) scopes.pop();
    else if (renamed && type) declared.aliases.set(nameIn(renamed), type);
    else if (field && of) scopes.at(-1)?.fields?.set(field, { type: of, isOptional: optional !== undefined });
  }
  return declared;
}

const files = new Map([...FILES, EVENTS].map((file) => [file, declaredIn(file)]));

/** The methods of a file that receive JSON. */
function methodsIn(file: string): Method[] {
  const code = withoutComments(readFileSync(join(resources, `${file}.js`), "utf8"));
  const declarations = withoutComments(readFileSync(join(resources, `${file}.d.ts`), "utf8"));
  const calls = code.matchAll(
    /^ {4}(\w+)\([^\n]*\) \{\n\s+return this\._client\.(get|post|put|patch|getAPIList)\([^'`\n]*['`]([^'`\n]+)['`]([\s\S]*?)\n {4}\}/gm,
  );
  return [...calls].flatMap(([, name = "", call = "", path = "", rest = ""]) => {
    const [, kind, types = ""] =
      new RegExp(`^ {4}${name}\\([^\\n]*\\): (APIPromise|PagePromise)<(.+)>;$`, "m").exec(declarations) ?? [];
    const isList = kind === "PagePromise";
    const item = types.split(", ").at(-1) as string;
    const pattern = path.replace(/\$\{\w+\}/g, "[^/]+");
    return {
      name: `${file}.${name}`,
      file,
      path: new RegExp(`^${pattern}$`),
      method: call === "getAPIList" ? "GET" : call.toUpperCase(),
      type: isList ? `Array<${item}>` : item,
      isWhole: !isList && !rest.includes("obj.data"),
    };
  });
}

/** Without those whose responses have nothing. */
export const METHODS: readonly Method[] = FILES.filter((file) => file !== "shared")
  .flatMap(methodsIn)
  .filter(({ type }) => type !== "void");

/** What is wrong with a response, as `data[0].id: …`; empty for one that the types allow. Unknown fields are wrong too. */
export function faultsOf({ type, file, isWhole }: Method, body: unknown): string[] {
  const value = isWhole ? body : (body as { data?: unknown } | null)?.data;
  return check(value, type, { file, scope: [], at: isWhole ? "body" : "data" });
}

/** What is wrong with the `data` of an event that a webhook receives, by its type. */
export function eventFaults({ type, data }: { type: string; data: unknown }): string[] {
  const [name] =
    [...(files.get(EVENTS)?.interfaces ?? [])].find(([, fields]) => fields.get("type")?.type === `'${type}'`) ?? [];
  const named = name && files.get(EVENTS)?.interfaces.get(name)?.get("data")?.type;
  if (!named) throw new Error(`Mux has no event ${type}.`);
  return check(data, named, { file: EVENTS, scope: [], at: `${type} data` });
}

type Place = { file: string; scope: readonly string[]; at: string };

function check(value: unknown, type: string, place: Place): string[] {
  const alternatives = unionOf(type);
  if (alternatives.length > 1) {
    const all = alternatives.map((one) => check(value, one, place));
    return all.find((faults) => faults.length === 0) ?? [`${place.at}: ${shown(value)} is not ${type.slice(0, 200)}`];
  }
  const wrong = (isRight: boolean) => (isRight ? [] : [`${place.at}: ${shown(value)} is not ${type}`]);
  if (["string", "number", "boolean", "undefined"].includes(type)) return wrong(typeof value === type);
  if (type === "unknown") return [];
  if (type === "null") return wrong(value === null);
  if (/^'.*'$/.test(type)) return wrong(value === type.slice(1, -1));
  const [, item] = /^Array<(.+)>$/.exec(type) ?? [];
  if (item !== undefined)
    return Array.isArray(value)
      ? value.flatMap((one, index) => check(one, item, { ...place, at: `${place.at}[${index}]` }))
      : wrong(false);
  return checkNamed(value, type, place);
}

function checkNamed(value: unknown, type: string, { file, scope, at }: Place): string[] {
  const found = resolve(type, file, scope);
  if (!found) throw new Error(`The type ${type} of ${file} is not known.`);
  if ("alias" in found) return check(value, found.alias, { file: found.file, scope: found.scope, at });
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return [`${at}: ${shown(value)} is not ${type}`];
  const given = value as Record<string, unknown>;
  const unknown = Object.keys(given).filter((name) => !found.fields.has(name));
  return [
    ...unknown.map((name) => `${at}.${name}: is not a field of ${type}`),
    ...[...found.fields].flatMap(([name, field]) => {
      if (given[name] === undefined) return field.isOptional ? [] : [`${at}.${name}: is missing`];
      return check(given[name], field.type, { file: found.file, scope: found.scope, at: `${at}.${name}` });
    }),
  ];
}

type Found = { file: string; scope: string[] } & ({ fields: Map<string, Field> } | { alias: string });

/** A name from the inner namespace to the outer one, or of another file. */
function resolve(name: string, file: string, scope: readonly string[]): Found | null {
  const [first = "", ...rest] = name.split(".");
  const declared = files.get(file);
  const elsewhere = declared?.imports.get(first);
  if (elsewhere !== undefined && rest.length > 0) return resolve(rest.join("."), elsewhere, []);
  for (let depth = scope.length; depth >= 0; depth--) {
    const path = [...scope.slice(0, depth), ...name.split(".")];
    const fields = declared?.interfaces.get(path.join("."));
    // Its own namespace has the types that only it uses.
    if (fields) return { file, scope: path, fields };
    const alias = declared?.aliases.get(path.join("."));
    if (alias !== undefined) return { file, scope: path.slice(0, -1), alias };
  }
  return null;
}

/** The alternatives of a union, outside of brackets. */
function unionOf(type: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < type.length; at++) {
    if (type[at] === "<") depth++;
    else if (type[at] === ">") depth--;
    else if (depth === 0 && type.startsWith(" | ", at)) {
      parts.push(type.slice(from, at));
      from = at + 3;
    }
  }
  return [...parts, type.slice(from)];
}

const shown = (value: unknown) => JSON.stringify(value)?.slice(0, 100) ?? "nothing";

/** The method of Mux's client that sends this request; undefined for one whose response has no type. */
export const methodOf = (method: string, path: string): Method | undefined =>
  METHODS.find((one) => one.method === method && one.path.test(path));
