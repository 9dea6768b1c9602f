import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { readBytes } from "#platform/http/body.ts";
import { decodeKey, encodeKey, inBatches, page } from "#platform/http/paging.ts";
import { route } from "#platform/http/route.ts";
import { Paging } from "#platform/http/schemas.ts";
import { admit } from "#platform/limits/expensive.ts";
import { describedAs } from "#protocol/fields.ts";
import { Sha256Field } from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import type { EncodingProfileRow } from "#storage/db/schema.ts";
import { createProfile, deleteProfile, profileOwner, setImage, updateProfile } from "./change.ts";
import { findProfile, type ListedProfile, listProfiles, ofRow } from "./queries.ts";
import { EncodingProfile, ProfileOwner, ProfileParams, ProfilePatch, ProfileWrite, toProfile } from "./schema.ts";
import { countImage, MAX_IMAGE_BYTES, readImage, requirePng, storeImage } from "./watermark.ts";

const path = "/api/v1/encoding_profiles";
const tag = "Encoding profiles";
const read = ["assets:read", "assets:write"] as const;
const write = "assets:write" as const;
const Cursor = v.strictTuple([v.pipe(v.number(), v.integer())]);

const RawPng = v.pipe(
  v.string(),
  v.metadata({ openapi: { type: "string", format: "binary" } }),
  v.description("At most 1 MiB, and 4096 pixels wide and high"),
);

/** Runs work that writes rows of a tenant, within the storage of its plan. Throws 403 `quota_exceeded`. */
type WithinStorage = <T>(tx: Db, app: App, tenantId: number, work: () => Promise<T>) => Promise<T>;

export const encodingProfileRoutes = (withinStorage: WithinStorage) => [
  route({
    method: "GET",
    path,
    scope: [...read],
    tag,
    operationId: "listEncodingProfiles",
    summary: "List encoding profiles: the built-in ones, then the operator's and the tenant's in order of creation",
    query: v.object({ ...Paging, ...ProfileOwner.entries }),
    responses: { 200: v.array(EncodingProfile) },
    handle(context) {
      const { app, caller, query } = context;
      const from = decodeKey(query.cursor, Cursor)?.[0];
      const batches = inBatches({ from, keyOf: ({ id }: ListedProfile) => id }, (after, limit) =>
        listProfiles(app.db, caller, { limit, after, owner: query.tenant_id }),
      );
      return page<ListedProfile>(context, {
        batches,
        toWire: toProfile,
        cursorOf: (row: ListedProfile) => encodeKey([row.id]),
      });
    },
  }),
  route({
    method: "POST",
    path,
    scope: write,
    tag,
    operationId: "createEncodingProfile",
    summary: "Create an encoding profile; with the admin token and without tenant_id, one for all tenants",
    body: ProfileWrite,
    idempotent: {},
    responses: { 201: EncodingProfile },
    errors: {
      404: ["not_found"],
      409: ["encoding_profile_exists"],
      422: ["encoding_profile_limit_reached", "idempotency_key_reused"],
    },
    handle: ({ app, caller, body, commit }) => commit(async (tx) => shown(await createProfile(tx, app, caller, body))),
  }),
  route({
    method: "GET",
    path: `${path}/:name`,
    scope: [...read],
    tag,
    operationId: "getEncodingProfile",
    summary: "Get the encoding profile of this name: the tenant's, the operator's or a built-in one",
    params: ProfileParams,
    query: ProfileOwner,
    responses: { 200: EncodingProfile },
    async handle({ app, caller, params, query }) {
      const owner = await profileOwner(app.db, caller, query.tenant_id);
      return toProfile((await findProfile(app.db, owner, params.name)) ?? notFound("encoding profile"));
    },
  }),
  route({
    method: "PATCH",
    path: `${path}/:name`,
    scope: write,
    tag,
    operationId: "updateEncodingProfile",
    summary: "Update an encoding profile; jobs that are queued already are not affected",
    params: ProfileParams,
    query: ProfileOwner,
    body: ProfilePatch,
    responses: { 200: EncodingProfile },
    handle: ({ app, caller, params, query, body }) =>
      app.write(async (tx) =>
        shown(await updateProfile(tx, app, caller, { name: params.name, tenantId: query.tenant_id }, body)),
      ),
  }),
  route({
    method: "DELETE",
    path: `${path}/:name`,
    scope: write,
    tag,
    operationId: "deleteEncodingProfile",
    summary: "Delete an encoding profile",
    params: ProfileParams,
    query: ProfileOwner,
    responses: { 204: null },
    errors: { 409: ["encoding_profile_in_use"] },
    async handle({ app, caller, params, query }) {
      await app.write((tx) => deleteProfile(tx, caller, { name: params.name, tenantId: query.tenant_id }));
    },
  }),
  route({
    method: "PUT",
    path: `${path}/:name/watermark`,
    scope: write,
    tag,
    operationId: "setWatermark",
    summary: "Set the image of the watermark of an encoding profile",
    // An image may decompress to 128 MiB.
    expensive: "posters",
    params: ProfileParams,
    query: ProfileOwner,
    raw: true,
    rawBody: { "image/png": RawPng },
    responses: { 200: EncodingProfile },
    errors: {
      400: ["incomplete_body"],
      413: ["payload_too_large"],
      415: ["unsupported_media_type"],
      403: ["quota_exceeded"],
      422: ["invalid_image", "watermark_limit_reached"],
    },
    async handle(context) {
      const { app, caller, params, query, headers } = context;
      const owner = await profileOwner(app.db, caller, query.tenant_id);
      if (!/^image\/png\b/i.test(headers.get("content-type") ?? ""))
        throw new HttpError(415, "unsupported_media_type", "Send a PNG image with Content-Type: image/png.");
      const permit = await admit(app, "posters", owner ?? "operator", context.signal);
      let bytes: Uint8Array;
      try {
        bytes = await readBytes(context, MAX_IMAGE_BYTES);
        await requirePng(bytes);
      } finally {
        permit.release();
      }
      return app.write(async (tx) => {
        const sha256 = await storeImage(tx, app, bytes);
        const named = { name: params.name, tenantId: query.tenant_id };
        const set = async () => {
          const row = await setImage(tx, app, caller, named, sha256);
          if (owner !== null) await countImage(tx, app, owner, sha256, bytes.length);
          return row;
        };
        return shown(await (owner === null ? set() : withinStorage(tx, app, owner, set)));
      });
    },
  }),
  route({
    method: "GET",
    path: `${path}/:name/watermark`,
    scope: [...read],
    tag,
    operationId: "getWatermark",
    summary: "Get the image of the watermark of an encoding profile",
    params: ProfileParams,
    query: ProfileOwner,
    responses: { 200: RawPng },
    produces: ["image/png"],
    async handle({ app, caller, params, query }) {
      const owner = await profileOwner(app.db, caller, query.tenant_id);
      const profile = (await findProfile(app.db, owner, params.name)) ?? notFound("encoding profile");
      const image = profile.watermark && (await readImage(app.db, profile.watermark));
      return png(image || notFound("watermark"));
    },
  }),
  route({
    method: "GET",
    path: "/api/v1/watermarks/:sha256",
    credential: "worker",
    tag: "Transcoding jobs",
    operationId: "getJobWatermark",
    summary: "Get the image of a watermark that an encoding specification names",
    params: v.object({ sha256: describedAs(Sha256Field, v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))) }),
    responses: { 200: RawPng },
    produces: ["image/png"],
    handle: async ({ app, params }) => png((await readImage(app.db, params.sha256)) ?? notFound("watermark")),
  }),
];

const shown = (row: EncodingProfileRow) => toProfile(ofRow(row));

const png = (image: Buffer<ArrayBuffer>) =>
  new Response(image, { headers: { "content-type": "image/png", "cache-control": "private, no-cache" } });
