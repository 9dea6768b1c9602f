import type * as v from "valibot";
import { exampleOf } from "./openapi-examples.ts";
import { type Json, schemaOf, withReferences } from "./openapi-schema.ts";
import { isBodyRequired, type Route } from "./route.ts";

const DESCRIPTIONS: Record<number, string> = {
  200: "Done",
  201: "Created",
  202: "Accepted",
  204: "Done; no body",
  400: "The body is no JSON",
  401: "Credential missing or wrong",
  403: "Not allowed with this credential",
  404: "No such thing, or not the caller's",
  409: "Conflicts with the present state",
  413: "Body too large",
  415: "Wrong media type",
  422: "Not acceptable",
  429: "Too many requests",
  502: "A service that this one asks failed",
  503: "Not configured, or not now",
  507: "Storage is full",
};
/** The code that is shown where a route names none of its own. */
const CODES: Record<number, string> = {
  400: "invalid_json",
  401: "unauthorized",
  403: "forbidden_scope",
  404: "not_found",
  413: "payload_too_large",
  415: "unsupported_media_type",
  422: "validation_failed",
  429: "rate_limited",
};
const TAGS: Record<string, string> = {
  Tenants: "Who owns assets, keys and collections",
  "API keys": "Credentials with scopes",
  "Device tokens": "Keys for desktop uploaders",
  Assets: "Videos, what is known of them, and their tags",
  Collections: "Folders of assets",
  Uploads: "Sources on their way in",
  "Ingest batches": "Media that a desktop client encoded itself",
  "Transcoding jobs": "The worker's side: leases, progress, results",
  Subtitles: "Text tracks that a viewer reads; translated and re-timed",
  Tracks: "What happens when in a video: chapters, scenes, markers",
  Playback: "Addresses and tokens to play with",
  Analytics: "Who watches what, and how far",
  Billing: "What was used, what it comes to, and paying for a plan",
  Live: "Channels of your own live gateway, and what it asks before it lets somebody in",
  Webhooks: "Endpoints that are told of events, and what was sent to them",
  Operator: "The operator's own, with the admin token",
  Health: "For load balancers and monitors",
};
/** Between two routes, so that a document of many does not hold up every other request. */
const pause = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The OpenAPI 3.0.3 document of the table of routes, without its servers. */
export async function openApi(routes: readonly Route[]): Promise<Json> {
  const paths: Record<string, Json> = {};
  const components: Record<string, Json> = { Error: ERROR };
  for (const route of routes) {
    if (route.hidden) continue;
    const path = route.path.replaceAll(/\*\*:(\w+)|:(\w+)/g, "{$1$2}");
    const methods = [route.method, ...(route.alias ? [route.alias] : [])];
    paths[path] ??= {};
    for (const method of methods) paths[path][method.toLowerCase()] = operation(route, method, components);
    await pause();
  }
  return {
    openapi: "3.0.3",
    info: {
      title: "vodbox",
      version: "1.0.0",
      description: "A tenant-scoped video platform.",
      license: { name: "MIT", url: "https://opensource.org/license/mit" },
    },
    tags: [...new Set(routes.filter((route) => !route.hidden).map((route) => route.tag))].map((name) => ({
      name,
      description: TAGS[name] ?? name,
    })),
    paths,
    components: { securitySchemes: SECURITY, schemas: components, headers: HEADERS },
  };
}

const header = (name: string, description: string) => ({ type: "apiKey", in: "header", name, description });
const SECURITY = {
  apiKey: header("X-API-Key", "A tenant's key, with scopes"),
  adminToken: header("X-SVC-ADMIN-TOKEN", "Every tenant, every scope"),
  workerToken: header("X-SVC-WORKER-TOKEN", "The worker surface"),
  leaseToken: header("X-SVC-JOB-LEASE-TOKEN", "One job's lease"),
  gatewayToken: header("X-SVC-LIVE-TOKEN", "The live gateway; also as Bearer, Basic password or ?token="),
  batchToken: header("X-SVC-BATCH-TOKEN", "One ingest batch's lease, in place of a key"),
};
const text = (description: string, example: string) => ({ description, schema: { type: "string" }, example });
const HEADERS = {
  "X-Request-Id": text("Names this answer to support", "req_5f0c8a52-3d5e-4c3a-9a2e-0c7f5f0d9b11"),
  Link: text("RFC 8288: where the next page is, when there is one", '<https://video.example.com/…>; rel="next"'),
  "Idempotent-Replayed": text("`true` on the answer to a repeat", "true"),
  RateLimit: text("What is left, and until when", '"uploads";r=119;t=60'),
  "RateLimit-Policy": text("What is allowed", '"uploads";q=120;w=60'),
  "Retry-After": text("Seconds to wait", "12"),
};
const headers = (...names: (keyof typeof HEADERS)[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const ERROR = {
  type: "object",
  required: ["error", "code", "request_id"],
  properties: {
    error: { type: "string", description: "For people" },
    code: { type: "string", description: "For programs" },
    details: { type: "object", additionalProperties: { type: "array", items: { type: "string" } } },
    required_scopes: { type: "array", items: { type: "string" } },
    request_id: { type: "string" },
  },
};

function operation(route: Route, method: string, components: Record<string, Json>): Json {
  const words = `${method.toLowerCase()} ${route.path}`
    .replace("/api/v1", "")
    .replaceAll(/[^a-zA-Z]+(\w)/g, (_, letter: string) => letter.toUpperCase());
  return {
    operationId: words,
    summary: route.summary,
    tags: [route.tag],
    security: security(route),
    ...(route.scopes.length > 0 && { description: `Scope: ${route.scopes.join(" or ")}.` }),
    parameters: parameters(route),
    ...requestBody(route, components),
    responses: responses(route, components),
  };
}

function media(schema: Json, components: Record<string, Json>): Json {
  const referenced = withReferences(schema, components) as Json;
  return { schema: referenced, example: exampleOf(referenced, components) };
}

function requestBody(route: Route, components: Record<string, Json>): Json {
  const type = route.form ? "multipart/form-data" : "application/json";
  const bodies = { ...(route.body && { [type]: route.body }), ...route.rawBody };
  const content = Object.entries(bodies).map(([name, schema]) => [name, media(schemaOf(schema), components)] as const);
  if (content.length === 0) return {};
  // None is taken as an empty one, and where that will do none need be sent.
  const required = !route.body || isBodyRequired(route);
  return { requestBody: { required, content: Object.fromEntries(content) } };
}

function security(route: Route): Json[] {
  const also: Json = route.lease ? { leaseToken: [] } : {};
  if (route.credential === "key")
    return [{ apiKey: [] }, { adminToken: [] }, ...(route.batchToken ? [{ batchToken: [] }] : [])];
  if (route.credential === "worker")
    return [
      { workerToken: [], ...also },
      { adminToken: [], ...also },
    ];
  if (route.credential === "gateway") return [{ gatewayToken: [] }];
  return route.credential === "admin" ? [{ adminToken: [] }] : [];
}

function parameters(route: Route): Json[] {
  const of = (schema: v.GenericSchema<unknown, unknown> | undefined, place: "path" | "query") => {
    if (!schema) return [];
    const { properties = {}, required = [] } = schemaOf(schema) as {
      properties?: Record<string, Json>;
      required?: string[];
    };
    return Object.entries(properties).map(([name, { description, ...rest }]) => ({
      name,
      in: place,
      required: place === "path" || required.includes(name),
      ...(description ? { description } : {}),
      schema: rest,
      ...(place === "path" && { example: exampleOf(rest, {}, name) }),
    }));
  };
  const sent = [...(route.requiredHeaders ?? []), ...(route.idempotent ? ["Idempotency-Key"] : [])].map((name) => ({
    name,
    in: "header",
    required: route.requiredHeaders?.includes(name) ?? false,
    schema: { type: "string", minLength: 1, maxLength: 255 },
  }));
  return [...of(route.params, "path"), ...of(route.query, "query"), ...sent];
}

function responses(route: Route, components: Record<string, Json>): Json {
  const answers: Json = {};
  for (const [status, schema] of Object.entries(route.responses)) {
    answers[status] = {
      description: DESCRIPTIONS[Number(status)] ?? "Answer",
      headers: headersOf(route),
      ...(schema && {
        content: { "application/json": media(schemaOf(schema, "output"), components), ...others(route) },
      }),
    };
  }
  for (const status of errorStatuses(route)) {
    const named = route.errors?.[status];
    const codes = status === 503 && route.expensive ? [...(named ?? []), "busy"] : named;
    const description = `${DESCRIPTIONS[status] ?? "Error"}${codes ? ` (${codes.join(", ")})` : ""}`;
    answers[status] = {
      description,
      headers: headers(
        "X-Request-Id",
        ...(route.limit ? RATE_HEADERS : []),
        ...(status === 429 || (status === 503 && route.expensive) ? (["Retry-After"] as const) : []),
      ),
      content: errorContent(codes?.[0] ?? CODES[status] ?? "internal_server_error", description),
    };
  }
  answers.default = {
    description: "Anything else: internal_server_error, and at every address method_not_allowed",
    headers: headers("X-Request-Id"),
    content: errorContent("internal_server_error", "Something went wrong on the server."),
  };
  return answers;
}

const RATE_HEADERS = ["RateLimit", "RateLimit-Policy"] as const;

function headersOf(route: Route): Json {
  const entries = (route.query as { entries?: object } | undefined)?.entries ?? {};
  return headers(
    "X-Request-Id",
    ...("cursor" in entries ? (["Link"] as const) : []),
    ...(route.idempotent ? (["Idempotent-Replayed"] as const) : []),
    ...(route.limit ? RATE_HEADERS : []),
  );
}

const errorContent = (code: string, error: string) => ({
  "application/json": {
    schema: { $ref: "#/components/schemas/Error" },
    example: { error, code, request_id: "req_5f0c8a52-3d5e-4c3a-9a2e-0c7f5f0d9b11" },
  },
});

const others = (route: Route): Json =>
  Object.fromEntries((route.produces ?? []).map((name) => [name, { schema: { type: "string" } }]));

/** What follows from the row: a credential can be wrong, a scope be missing, a body be unfit. */
function errorStatuses(route: Route): number[] {
  const statuses = new Set(Object.keys(route.errors ?? {}).map(Number));
  if (route.credential !== "none" && route.credential !== "signed") statuses.add(401);
  if (route.scopes.length > 0) statuses.add(403);
  if (route.params) statuses.add(404);
  if (route.body) for (const status of [400, 413, 415, 422]) statuses.add(status);
  if (route.query) statuses.add(422);
  if (route.limit) statuses.add(429);
  if (route.expensive) for (const status of [429, 503]) statuses.add(status);
  return [...statuses].sort();
}
