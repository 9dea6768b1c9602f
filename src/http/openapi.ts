import { toJsonSchema } from "@valibot/to-json-schema";
import type * as v from "valibot";
import type { Route } from "./route.ts";

type Json = Record<string, unknown>;

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
  507: "Storage is full",
};

/** The OpenAPI 3.0.3 document of the table of routes. */
export function openApi(routes: readonly Route[], baseUrl: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    if (route.hidden) continue;
    const path = route.path.replaceAll(/\*\*:(\w+)|:(\w+)/g, "{$1$2}");
    const methods = [route.method, ...(route.alias ? [route.alias] : [])];
    paths[path] ??= {};
    for (const method of methods) paths[path][method.toLowerCase()] = operation(route, method);
  }
  return {
    openapi: "3.0.3",
    info: {
      title: "vodbox",
      version: "1.0.0",
      description: "A tenant-scoped video platform.",
      license: { name: "MIT", url: "https://opensource.org/license/mit" },
    },
    servers: [{ url: baseUrl }],
    tags: [...new Set(routes.filter((route) => !route.hidden).map((route) => route.tag))].map((name) => ({ name })),
    paths,
    components: { securitySchemes: SECURITY, schemas: { Error: ERROR } },
  };
}

const header = (name: string, description: string) => ({ type: "apiKey", in: "header", name, description });
const SECURITY = {
  apiKey: header("X-API-Key", "A tenant's key, with scopes"),
  adminToken: header("X-SVC-ADMIN-TOKEN", "Every tenant, every scope"),
  workerToken: header("X-SVC-WORKER-TOKEN", "The worker surface"),
  leaseToken: header("X-SVC-JOB-LEASE-TOKEN", "One job's lease"),
};
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

function operation(route: Route, method: string): Json {
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
    ...requestBody(route),
    responses: responses(route),
  };
}

function requestBody(route: Route): Json {
  const type = route.form ? "multipart/form-data" : "application/json";
  const bodies = { ...(route.body && { [type]: route.body }), ...route.rawBody };
  const content = Object.entries(bodies).map(([media, schema]) => [media, { schema: schemaOf(schema) }] as const);
  return content.length === 0 ? {} : { requestBody: { required: true, content: Object.fromEntries(content) } };
}

function security(route: Route): Json[] {
  const also: Json = route.lease ? { leaseToken: [] } : {};
  if (route.credential === "key") return [{ apiKey: [] }, { adminToken: [] }];
  if (route.credential === "worker")
    return [
      { workerToken: [], ...also },
      { adminToken: [], ...also },
    ];
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
    }));
  };
  const headers = [...(route.requiredHeaders ?? []), ...(route.idempotent ? ["Idempotency-Key"] : [])].map((name) => ({
    name,
    in: "header",
    required: route.requiredHeaders?.includes(name) ?? false,
    schema: { type: "string", minLength: 1, maxLength: 255 },
  }));
  return [...of(route.params, "path"), ...of(route.query, "query"), ...headers];
}

function responses(route: Route): Json {
  const answers: Json = {};
  for (const [status, schema] of Object.entries(route.responses)) {
    answers[status] = {
      description: DESCRIPTIONS[Number(status)] ?? "Answer",
      ...(schema && { content: { "application/json": { schema: schemaOf(schema, "output") }, ...others(route) } }),
    };
  }
  for (const status of errorStatuses(route)) {
    const codes = route.errors?.[status];
    answers[status] = {
      description: `${DESCRIPTIONS[status] ?? "Error"}${codes ? ` (${codes.join(", ")})` : ""}`,
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
    };
  }
  return answers;
}

const others = (route: Route): Json =>
  Object.fromEntries((route.produces ?? []).map((media) => [media, { schema: { type: "string" } }]));

/** What follows from the row: a credential can be wrong, a scope be missing, a body be unfit. */
function errorStatuses(route: Route): number[] {
  const statuses = new Set(Object.keys(route.errors ?? {}).map(Number));
  if (route.credential !== "none" && route.credential !== "signed") statuses.add(401);
  if (route.scopes.length > 0) statuses.add(403);
  if (route.params) statuses.add(404);
  if (route.body) for (const status of [400, 413, 415, 422]) statuses.add(status);
  if (route.query) statuses.add(422);
  if (route.limit) statuses.add(429);
  return [...statuses].sort();
}

function schemaOf(schema: v.GenericSchema<unknown, unknown>, typeMode: "input" | "output" = "input"): Json {
  const { $schema: _, ...json } = toJsonSchema(schema, {
    target: "openapi-3.0",
    typeMode,
    errorMode: "ignore",
    // OpenAPI 3.0 takes no empty list here, JSON Schema does.
    overrideSchema({ valibotSchema, jsonSchema: { required, ...rest } }) {
      // The only custom schema there is: a file in a form.
      if (valibotSchema.type === "custom") return { type: "string", format: "binary" };
      return required?.length === 0 ? rest : undefined;
    },
    overrideAction({ valibotAction, jsonSchema }) {
      if (valibotAction.type !== "metadata") return undefined;
      // It comes merged in already: what is for `validate` goes, and what is for here takes its place.
      const { errorCode: _, openapi = {}, ...rest } = jsonSchema as Json;
      return { ...rest, ...(openapi as Json) };
    },
  }) as Json;
  return json;
}
