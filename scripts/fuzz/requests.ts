import fc from "fast-check";
import { documentOf, type FuzzDocument } from "./documents.ts";
import type { Fixtures } from "./fixtures.ts";
import type { FuzzRoute } from "./route-table.ts";
import { HEADERS, RAW, SEGMENTS, TYPES, VALUES } from "./values.ts";

export type Credential = "own" | "other" | "admin" | "worker" | "none" | "broken";

/** A request before the ids of existing resources are inserted. */
export type FuzzRequest = {
  target: FuzzRoute;
  credential: Credential;
  /** One for each path parameter; a number selects one of the known ids. */
  params: (string | number)[];
  query: string;
  headers: [name: string, value: string][];
  body:
    | { kind: "none" }
    | { kind: "raw"; raw: string | Uint8Array; type: string }
    | { kind: "json"; dice: number[] }
    | { kind: "document"; document: FuzzDocument };
};

const anyCredential = fc.constantFrom<Credential>("own", "other", "admin", "worker", "none", "broken");
/** Usually one that the route accepts, or most requests would end there. */
const credentialOf = ({ route }: FuzzRoute): fc.Arbitrary<Credential> => {
  const fitting: Partial<Record<string, Credential[]>> = { key: ["own", "own", "admin"], worker: ["worker", "admin"] };
  const fit = fitting[route.credential] ?? ["admin"];
  return fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...fit) }, { weight: 1, arbitrary: anyCredential });
};
const param = fc.oneof({ weight: 5, arbitrary: fc.nat(20) }, { weight: 1, arbitrary: fc.constantFrom(...SEGMENTS) });
const value = fc.constantFrom(...VALUES);
const headers = fc.array(
  fc
    .constantFrom(...Object.entries(HEADERS))
    .chain(([name, values]) => fc.tuple(fc.constant(name), fc.constantFrom(...values))),
  { maxLength: 3 },
);

const queryOf = ({ route }: FuzzRoute): fc.Arbitrary<string> => {
  const names = Object.keys((route.query as { entries?: object } | undefined)?.entries ?? { x: 0 });
  const pairs = fc
    .array(fc.tuple(fc.constantFrom(...names, "token", "time", "width"), value), { maxLength: 3 })
    .map((all) => {
      const query = new URLSearchParams(
        all.map(([name, given]): [string, string] => [name, String(given).slice(0, 3000)]),
      );
      return query.size > 0 ? `?${query}` : "";
    });
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant("") },
    { weight: 3, arbitrary: pairs },
    fc.constant("?%ff=%E0%A4&&=="),
  );
};

const bodyOf = ({ route, example }: FuzzRoute): fc.Arbitrary<FuzzRequest["body"]> => {
  if (route.method === "GET" || route.method === "HEAD") return fc.constant({ kind: "none" });
  const raw = fc.record({
    kind: fc.constant("raw" as const),
    raw: fc.constantFrom(...RAW),
    type: fc.constantFrom("application/json", ...TYPES),
  });
  const json = fc.record({ kind: fc.constant("json" as const), dice: fc.array(fc.nat(), { maxLength: 12 }) });
  const document = fc.record({
    kind: fc.constant("document" as const),
    document: fc.oneof(documentOf("vtt"), documentOf("srt"), documentOf("ttml"), documentOf("csv")),
  });
  const takesText =
    route.form !== undefined || route.raw === true || JSON.stringify(example ?? "").includes('"content"');
  return fc.oneof(
    { weight: 6, arbitrary: json },
    { weight: 2, arbitrary: raw },
    { weight: takesText ? 6 : 1, arbitrary: document },
  );
};

export const requestTo = (routes: readonly FuzzRoute[]): fc.Arbitrary<FuzzRequest> =>
  fc.constantFrom(...routes).chain((target) =>
    fc.record({
      target: fc.constant(target),
      credential: credentialOf(target),
      params: fc.array(param, { minLength: 4, maxLength: 4 }),
      query: queryOf(target),
      headers,
      body: bodyOf(target),
    }),
  );

/** An example with unexpected values; `dice` selects what and where. Unchanged without dice. */
export function mutated(example: unknown, dice: readonly number[]): unknown {
  const [first, ...rest] = dice;
  if (first === undefined) return example;
  if (typeof example !== "object" || example === null || first % 7 === 0) return VALUES[first % VALUES.length];
  const names = Object.keys(example);
  const name = names[first % Math.max(names.length, 1)];
  if (name === undefined) return VALUES[first % VALUES.length];
  const copy: Record<string, unknown> = Array.isArray(example) ? ([...example] as never) : { ...example };
  const [chance = 0] = rest;
  if (chance % 11 === 0) delete copy[name];
  else if (chance % 11 === 1)
    copy[["__proto__x", "constructor", "", "a\0b", "unknown"][chance % 5] as string] = VALUES[chance % VALUES.length];
  else copy[name] = mutated(copy[name], rest.slice(1));
  return copy;
}

export type Sent = {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | Uint8Array | undefined;
};

/** The request for a server with `fixtures`. */
export function sentBy(request: FuzzRequest, fixtures: Fixtures): Sent {
  const { target, params, query, body } = request;
  const { route, example } = target;
  const path = pathOf(route.path, fixtures, params);
  const headers: Record<string, string> = { ...fixtures.credentials[request.credential] };
  for (const [name, text] of request.headers) headers[name] = text;
  if (route.requiredHeaders && !("idempotency-key" in headers))
    headers["idempotency-key"] = `key-${params.join("-").slice(0, 50)}`;
  const common = { method: route.method, path: path + query, headers };
  if (body.kind === "none") return { ...common, body: undefined };
  if (body.kind === "raw") {
    headers["content-type"] = body.type;
    return { ...common, body: body.raw };
  }
  const { document } = body.kind === "document" ? body : { document: null };
  if (document && route.form) {
    headers["content-type"] = "multipart/form-data; boundary=fuzz";
    return { ...common, body: form(example, document) };
  }
  if (document && route.raw) {
    headers["content-type"] = document.extension === "csv" ? "text/csv" : "application/octet-stream";
    return { ...common, body: document.text };
  }
  headers["content-type"] = "application/json";
  const given = document
    ? { ...(example as object | undefined), content: document.text }
    : mutated(example ?? {}, body.kind === "json" ? body.dice : []);
  return { ...common, body: JSON.stringify(given) };
}

/** The path of a route with these parameters; a number selects one of the known ids. */
export function pathOf(path: string, fixtures: Fixtures, params: readonly (string | number)[]): string {
  let index = 0;
  return path.replaceAll(/(?:\*\*)?:(\w+)/g, (_, name: string, offset: number) => {
    const chosen = params[index++ % params.length] as string | number;
    return typeof chosen === "string" ? chosen : idOf(fixtures, { name, before: path.slice(0, offset), chosen });
  });
}

/** The id of an existing resource, by the name of the parameter and the preceding path segment. */
function idOf({ ids }: Fixtures, { name, before, chosen }: { name: string; before: string; chosen: number }): string {
  const segment =
    before
      .split("/")
      .filter((part) => part !== "" && !part.startsWith(":"))
      .at(-1) ?? "";
  const known = ids[`${segment}/:${name}`] ?? ids[name] ?? ids[segment] ?? ["1"];
  return known[chosen % known.length] as string;
}

function form(example: unknown, { extension, text }: FuzzDocument): string {
  const fields = Object.entries((example ?? {}) as Record<string, unknown>).filter(([name]) => name !== "file");
  const part = (head: string, content: unknown) =>
    `--fuzz\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
  return `${fields.map(([name, given]) => part(`name="${name}"`, given)).join("")}${part(`name="file"; filename="a.${extension}"`, text)}--fuzz--\r\n`;
}
