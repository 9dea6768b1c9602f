import type * as v from "valibot";
import { describeProperties } from "./openapi-describe.ts";
import { exampleOf } from "./openapi-examples.ts";
import { type Json, schemaOf, withReferences } from "./openapi-schema.ts";
import { isBodyRequired, type Route } from "./route.ts";
import { SESSION_COOKIE } from "./session.ts";

const DESCRIPTIONS: Record<number, string> = {
  200: "Done",
  201: "Created",
  202: "Accepted",
  204: "Success, no body",
  400: "The body is not valid JSON",
  401: "Missing or invalid credentials",
  403: "Not permitted for these credentials",
  404: "Not found, or not visible to the caller",
  409: "Conflict with the current state",
  410: "Deleted; it will not return",
  413: "Body too large",
  415: "Unsupported media type",
  422: "Validation failed",
  429: "Too many requests",
  502: "An upstream service failed",
  503: "Not configured or temporarily unavailable",
  507: "Storage is full",
};
/** The error code in the example of a route that lists none. */
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
/** All tags, in the order in which the document and /docs show them: what a new user needs comes first. */
const TAGS: Record<string, string> = {
  Uploads: "Uploads of sources",
  Playback: "Playback URLs and tokens",
  Shares: "Links to an asset that work without an account",
  Users: "Users of a tenant, their roles, and invitations",
  Account: "One's own account, in a session",
  Assets: "Videos, their metadata and tags",
  Collections: "Folders of assets",
  Subtitles: "Subtitles, their translation and synchronization",
  Tracks: "Timed metadata: chapters, scenes, markers",
  Webhooks: "Webhook endpoints and deliveries",
  Analytics: "Plays, viewers and watch time",
  Live: "Live channels and the authorization callback of a live gateway",
  Imports: "Progress of imports from other platforms, which `vodbox import` reports",
  "Ingest batches": "Ingest of media that is already encoded",
  Sessions: "Sign-in of browsers",
  "API keys": "API keys with scopes",
  "Encoding profiles": "What is produced from a source: codecs, ladder, audio, watermark",
  "Signing keys": "Public keys of playback tokens that a tenant signs itself",
  "Device tokens": "API keys for desktop uploaders",
  Tenants: "Owners of assets, API keys and collections",
  Billing: "Usage, cost estimates and orders",
  "Transcoding jobs": "Worker API: leases, progress, results",
  "Audio tracks": "Audio in further languages, commentary and audio description, added to ready assets",
  Operator: "Operator endpoints (admin token)",
  Health: "Health checks",
};
/** Throws for a tag without a description: it would have no place in the order. */
function tagsOf(routes: readonly Route[]): Json[] {
  const used = new Set(routes.filter((route) => !route.hidden).map((route) => route.tag));
  const unknown = [...used].filter((name) => !(name in TAGS));
  if (unknown.length > 0) throw new Error(`Tags without a description: ${unknown.join(", ")}`);
  return Object.entries(TAGS)
    .filter(([name]) => used.has(name))
    .map(([name, description]) => ({ name, description }));
}

/** Markdown. */
const INTRODUCTION = `A multi-tenant video platform: upload a video, and play it as HLS and DASH.

1. \`POST /api/v1/uploads/initiate\` creates an asset and returns a URL for the source.
2. \`PUT\` the source to this URL, then \`POST /api/v1/uploads/{id}/complete\`.
3. When the asset is ready, \`GET /api/v1/playback/{id}\` returns URLs for players.

## Authentication

Send the API key of a tenant as \`X-API-Key\`, or as a Bearer token. Each operation names its scopes. The operator sends
the admin token as \`X-SVC-ADMIN-TOKEN\`. A browser that has signed in sends its session cookie, and \`X-CSRF-Token\` with
each change.

## Errors

A response above 399 has a JSON body with \`error\` (a sentence), \`code\` (constant, for programs) and \`request_id\`.
Invalid fields are listed in \`details\`. 429 and 503 have a \`Retry-After\` header. A resource of another tenant is 404.`;

/** Yields between routes, because building the document takes long enough to delay other requests. */
const pause = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The OpenAPI 3.0.3 document of the route table, without its servers. */
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
  const described: Record<string, Json> = {};
  for (const [title, schema] of Object.entries(components)) {
    described[title] = describeProperties(schema);
    await pause();
  }
  return {
    openapi: "3.0.3",
    info: {
      title: "vodbox",
      // The version of the API, which its specification defines; a release of the program has its own.
      version: "1.0.0",
      description: INTRODUCTION,
      contact: { name: "The operator of this server" },
      license: { name: "MIT", url: "https://opensource.org/license/mit" },
    },
    tags: tagsOf(routes),
    paths,
    components: { securitySchemes: SECURITY, schemas: described, headers: HEADERS },
  };
}

const header = (name: string, description: string) => ({ type: "apiKey", in: "header", name, description });
const SECURITY = {
  apiKey: header("X-API-Key", "API key of a tenant, with scopes"),
  adminToken: header("X-SVC-ADMIN-TOKEN", "Operator token: all tenants, all scopes"),
  workerToken: header("X-SVC-WORKER-TOKEN", "Worker token"),
  leaseToken: header("X-SVC-JOB-LEASE-TOKEN", "Lease token of a job"),
  gatewayToken: header(
    "X-SVC-LIVE-TOKEN",
    "Live gateway token; also accepted as Bearer token, Basic password or ?token=",
  ),
  session: {
    type: "apiKey",
    in: "cookie",
    name: SESSION_COOKIE,
    description:
      "Session of a browser. It is accepted wherever an API key or the admin token is; changes also need its CSRF token in X-CSRF-Token",
  },
  batchToken: header("X-SVC-BATCH-TOKEN", "Lease token of a batch upload, instead of an API key"),
};
const text = (description: string, example: string) => ({ description, schema: { type: "string" }, example });
const HEADERS = {
  "X-Request-Id": text("Request id, for support", "req_5f0c8a52-3d5e-4c3a-9a2e-0c7f5f0d9b11"),
  Link: text("URL of the next page, if there is one (RFC 8288)", '<https://video.example.com/…>; rel="next"'),
  "Idempotent-Replayed": text("`true` if this is the stored response of an earlier request", "true"),
  RateLimit: text("Remaining requests and time until reset", '"uploads";r=119;t=60'),
  "RateLimit-Policy": text("Rate limit policy", '"uploads";q=120;w=60'),
  "Retry-After": text("Seconds to wait before retrying", "12"),
};
const headers = (...names: (keyof typeof HEADERS)[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const ERROR = {
  type: "object",
  required: ["error", "code", "request_id"],
  properties: {
    error: { type: "string", description: "What happened and what to do, for people" },
    code: { type: "string", description: "What happened, for programs" },
    details: {
      type: "object",
      additionalProperties: { type: "array", items: { type: "string" } },
      description: "Messages by field",
    },
    required_scopes: {
      type: "array",
      items: { type: "string" },
      description: "Any one of these scopes would suffice",
    },
    request_id: { type: "string", description: "Id of the request, for support; also in the header X-Request-Id" },
  },
};

function operation(route: Route, method: string, components: Record<string, Json>): Json {
  const { operationId } = route;
  if (operationId === undefined) throw new Error(`${route.method} ${route.path} has no operationId`);
  return {
    // An alias is the same operation, but each needs a name of its own.
    operationId: method === route.alias ? `${operationId}By${titleCase(method)}` : operationId,
    summary: route.summary,
    tags: [route.tag],
    security: security(route),
    description: permissions(route),
    parameters: parameters(route),
    ...requestBody(route, components),
    responses: responses(route, components),
    ...callbacks(route, components),
  };
}

const titleCase = (word: string) => word.charAt(0) + word.slice(1).toLowerCase();

function callbacks({ sends }: Route, components: Record<string, Json>): Json {
  if (!sends) return {};
  const content = { "application/json": media(schemaOf(sends.body, "output"), components) };
  const request = {
    summary: sends.summary,
    security: [],
    requestBody: { required: true, content },
    responses: { "2XX": { description: "Received" }, "4XX": { description: "Failed; sent again later" } },
  };
  return { callbacks: { [sends.name]: { [sends.url]: { post: request } } } };
}

function media(schema: Json, components: Record<string, Json>): Json {
  const referenced = withReferences(schema, components) as Json;
  return { schema: describeProperties(referenced), example: exampleOf(referenced, components) };
}

function requestBody(route: Route, components: Record<string, Json>): Json {
  const type = route.form ? "multipart/form-data" : "application/json";
  const bodies = { ...(route.body && { [type]: route.body }), ...route.rawBody };
  const content = Object.entries(bodies).map(([name, schema]) => [name, media(schemaOf(schema), components)] as const);
  if (content.length === 0) return {};
  // A missing body is treated as an empty object; where that is valid, the body is optional.
  const required = !route.body || isBodyRequired(route);
  return { requestBody: { required, content: Object.fromEntries(content) } };
}

/** Who may call an operation, which the security schemes do not say in full. */
function permissions({ credential, scopes, lease }: Route): string {
  if (scopes.length > 0) return `Scope: ${scopes.join(" or ")}.`;
  if (credential === "key") return "Needs an API key, of any scope.";
  if (credential === "worker")
    return lease ? "Needs the worker token and the lease token of the job." : "Needs the worker token.";
  if (credential === "admin") return "Needs the admin token.";
  if (credential === "session") return "Needs the session cookie.";
  if (credential === "gateway") return "Needs the token of the live gateway.";
  return "Needs no credentials.";
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
  if (route.credential === "session") return [{ session: [] }];
  if (route.credential === "gateway") return [{ gatewayToken: [] }];
  return route.credential === "admin" ? [{ adminToken: [] }] : [];
}

/** Headers that routes require or accept. */
const SENT_HEADERS: Record<string, string> = {
  "Idempotency-Key": "Repeats with the same key and body return the first response, for 24 hours",
  "X-SVC-JOB-ATTEMPT-ID": "Id of the attempt, from the contract",
};

function parameters(route: Route): Json[] {
  const of = (schema: v.GenericSchema<unknown, unknown> | undefined, location: "path" | "query") => {
    if (!schema) return [];
    const { properties = {}, required = [] } = schemaOf(schema) as {
      properties?: Record<string, Json>;
      required?: string[];
    };
    return Object.entries(properties).map(([name, { description, ...rest }]) => ({
      name,
      in: location,
      required: location === "path" || required.includes(name),
      description,
      schema: rest,
      ...(location === "path" && { example: exampleOf(rest, {}, name) }),
    }));
  };
  const sent = [...(route.requiredHeaders ?? []), ...(route.idempotent ? ["Idempotency-Key"] : [])].map((name) => ({
    name,
    in: "header",
    description: SENT_HEADERS[name],
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
    description: "All other errors: internal_server_error, and method_not_allowed on every path",
    headers: headers("X-Request-Id"),
    content: errorContent("internal_server_error", "Internal server error; the log has details under this request_id."),
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

/** Errors that follow from the row: an invalid credential, a missing scope, an invalid body. */
function errorStatuses(route: Route): number[] {
  const statuses = new Set(Object.keys(route.errors ?? {}).map(Number));
  if (route.credential !== "none" && route.credential !== "signed") statuses.add(401);
  // A viewer changes nothing.
  if (route.scopes.length > 0 || route.forAdmins || (route.credential === "key" && route.method !== "GET"))
    statuses.add(403);
  if (route.params) statuses.add(404);
  if (route.body) for (const status of [400, 413, 415, 422]) statuses.add(status);
  if (route.query) statuses.add(422);
  if (route.limit || route.idempotent) statuses.add(429);
  if (route.expensive) for (const status of [429, 503]) statuses.add(status);
  return [...statuses].sort();
}
