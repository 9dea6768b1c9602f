import type { Route } from "#platform/http/route.ts";
import type { Fixtures } from "#scripts/fuzz/fixtures.ts";
import { pathOf } from "#scripts/fuzz/requests.ts";

/** A part of a request's head with about `bytes`: a change of its path, or more headers. */
export type HeadShape = { name: string; make(bytes: number): { path: string; headers?: Record<string, string> } };

const repeated = (unit: string, bytes: number) => unit.repeat(Math.max(1, Math.floor(bytes / unit.length)));

/** Values of one query field or path segment: long, and of many parts. */
const TEXTS: Record<string, string> = {
  letters: "a",
  digits: "9",
  commas: "a,",
  escapes: "%41",
  "escapes that are no text": "%ff",
  "escaped separators": "%2f",
  dots: "..%2f",
  brackets: "%5b",
  spaces: "%20",
  minuses: "-",
};

/** Headers that some part of the server reads, with values of many parts. */
const HEADER_TEXTS: Record<string, string[]> = {
  range: ["0-0,", "-1,", ","],
  "if-none-match": ['"a",', "W/", "a", '"'],
  "if-modified-since": ["9", "a"],
  accept: ["text/html,", "*/*;q=0.1,", ";"],
  "accept-encoding": ["gzip,", "br;q=0.1,", ";q=", ","],
  "accept-language": ["en,", "en-", ";"],
  "content-type": ["application/json;", "; a=b", "/"],
  "content-range": ["bytes 0-1/2,", "9"],
  "content-disposition": ["; a=b", '"'],
  cookie: ["a=b; ", "vodbox_session=a; ", "=", "; "],
  authorization: ["Bearer ", "a.", "a", " "],
  "x-api-key": ["svc_", "."],
  "x-svc-admin-token": ["a"],
  "x-svc-worker-token": ["a"],
  "x-svc-batch-token": ["a"],
  "x-svc-job-lease-token": ["a"],
  "idempotency-key": ["a"],
  forwarded: ["for=1.2.3.4,", "for=", ";"],
  "x-forwarded-for": ["1.2.3.4,", ",", "::", "a"],
  "x-forwarded-proto": ["https,"],
  "user-agent": ["Mozilla/5.0 (", "(", " ", "Version/1 Mobile "],
  referer: ["https://a/", "a"],
  origin: ["https://a,", "a."],
  "sec-fetch-site": ["cross-site,"],
  "upload-metadata": ["a YQ==,", "a ", ","],
  "upload-checksum": ["sha1 ", "a"],
  "tus-resumable": ["1.0.0,"],
  "access-control-request-headers": ["x-a,", ","],
  traceparent: ["00-"],
};

const many = (bytes: number) => {
  const headers: Record<string, string> = {};
  for (let n = 0; n < Math.floor(bytes / 12); n++) headers[`x${n}`] = "a";
  return headers;
};

/** All ways to make the head of a request for a route large. */
export function headShapes(route: Route, fixtures: Fixtures): HeadShape[] {
  const usual = pathOf(route.path, fixtures, [0]);
  const fields = Object.keys((route.query as { entries?: object } | undefined)?.entries ?? {});
  // Read by pages and media, which declare no query.
  const more = route.hidden ? ["token", "time", "width", "t", "exp", "sig"] : [];
  const shapes: HeadShape[] = [];
  for (const field of [...fields, ...more, "unknown"])
    for (const [name, unit] of Object.entries(TEXTS))
      shapes.push({
        name: `${field}= ${name}`,
        make: (bytes) => ({ path: `${usual}?${field}=${repeated(unit, bytes)}` }),
      });
  for (const field of [...fields, "unknown"])
    shapes.push({
      name: `${field}=1 repeated`,
      make: (bytes) => ({ path: `${usual}?${repeated(`${field}=1&`, bytes)}` }),
    });
  for (const unit of ["&", "=", "?", "a&", "+"])
    shapes.push({ name: `query of ${unit}`, make: (bytes) => ({ path: `${usual}?${repeated(unit, bytes)}` }) });
  const params = [...route.path.matchAll(/:(\w+)/g)].map(([, param]) => param);
  params.forEach((param, index) => {
    for (const [name, unit] of Object.entries(TEXTS))
      shapes.push({
        name: `:${param} ${name}`,
        make: (bytes) => ({
          path: pathOf(
            route.path,
            fixtures,
            params.map((_, at) => (at === index ? repeated(unit, bytes) : 0)),
          ),
        }),
      });
    if (route.path.endsWith(`**:${param}`))
      for (const unit of ["a/", "/", "../", "~a/", "a.b/"])
        shapes.push({
          name: `:${param} of ${unit}`,
          make: (bytes) => ({
            path: pathOf(
              route.path,
              fixtures,
              params.map((_, at) => (at === index ? repeated(unit, bytes) : 0)),
            ),
          }),
        });
  });
  for (const [header, units] of Object.entries(HEADER_TEXTS))
    for (const unit of units)
      shapes.push({
        name: `${header}: ${unit}`,
        make: (bytes) => {
          const prefix = header === "range" ? "bytes=" : "";
          return { path: usual, headers: { [header]: `${prefix}${repeated(unit, bytes)}`.trim() } };
        },
      });
  shapes.push({ name: "many headers", make: (bytes) => ({ path: usual, headers: many(bytes) }) });
  return shapes;
}
