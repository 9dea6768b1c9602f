import * as v from "valibot";
import { notFound } from "#lib/base";
import { decodeKey, encodeKey, page } from "#platform/http/paging.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { Paging, QueryId } from "#platform/http/schemas.ts";
import { streamedJson } from "#platform/http/stream.ts";
import { createCollection, deleteCollection, updateCollection } from "./change.ts";
import { cursorOf, getCollection, listCollections } from "./queries.ts";
import { Collection, CollectionNode, CollectionPatch, CollectionWrite, toCollection } from "./schema.ts";
import { treeJson } from "./tree.ts";

const path = "/api/v1/collections";
const tag = "Collections";
const PlaceCursor = v.strictTuple([v.number(), v.number(), v.number()]);
const CollectionParams = v.object({ id: RecordIdInPath });
const TenantId = v.optional(v.pipe(QueryId, v.description("With the admin token")));

export const collectionRoutes = [
  route({
    method: "GET",
    path,
    scope: ["assets:read", "assets:write"],
    tag,
    operationId: "listCollections",
    summary: "List collections, by position, then creation time",
    query: v.object({ ...Paging, tenant_id: TenantId }),
    responses: { 200: v.array(Collection) },
    handle(context) {
      const { app, caller, query } = context;
      const after = decodeKey(query.cursor, PlaceCursor);
      const batches = listCollections(app, caller, { tenantId: query.tenant_id, after });
      return page(context, {
        batches,
        toWire: (row) => toCollection(app.baseUrl(), row),
        cursorOf: (row) => encodeKey(cursorOf(row)),
      });
    },
  }),
  route({
    method: "POST",
    path,
    scope: "assets:write",
    tag,
    operationId: "createCollection",
    summary: "Create a collection",
    body: CollectionWrite,
    idempotent: {},
    responses: { 201: Collection },
    errors: {
      403: ["quota_exceeded"],
      404: ["not_found"],
      422: ["collection_limit_reached", "idempotency_key_reused"],
    },
    handle: ({ app, caller, body, commit }) =>
      commit(async (tx) => toCollection(app.baseUrl(), await createCollection(tx, app, caller, body))),
  }),
  route({
    method: "GET",
    path: `${path}/tree`,
    expensive: "export",
    tag,
    operationId: "getCollectionTree",
    summary: "Get the tree of collections",
    query: v.object({ tenant_id: TenantId }),
    responses: { 200: v.array(CollectionNode) },
    async handle(context) {
      const { app, caller, query } = context;
      return streamedJson(context, treeJson(app, caller, query.tenant_id));
    },
  }),
  route({
    method: "GET",
    path: `${path}/:id`,
    scope: ["assets:read", "assets:write"],
    tag,
    operationId: "getCollection",
    summary: "Get a collection",
    params: CollectionParams,
    responses: { 200: Collection },
    handle: async ({ app, caller, params }) =>
      toCollection(app.baseUrl(), (await getCollection(app.db, caller, params.id)) ?? notFound("collection")),
  }),
  route({
    method: "PATCH",
    alias: "PUT",
    path: `${path}/:id`,
    scope: "assets:write",
    tag,
    operationId: "updateCollection",
    summary: "Update a collection, or publish it as a page",
    params: CollectionParams,
    body: CollectionPatch,
    responses: { 200: Collection },
    errors: { 403: ["quota_exceeded"], 422: ["collection_limit_reached"] },
    handle: async ({ app, caller, params, body }) =>
      toCollection(app.baseUrl(), await updateCollection(app, caller, params.id, body)),
  }),
  route({
    method: "DELETE",
    path: `${path}/:id`,
    scope: "assets:write",
    tag,
    operationId: "deleteCollection",
    summary: "Delete a collection; its assets stay and its subcollections become top-level",
    params: CollectionParams,
    responses: { 204: null },
    handle: ({ app, caller, params }) => deleteCollection(app, caller, params.id),
  }),
];
