import { and, asc, desc, eq, inArray, lt } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { ASSET_PROVIDERS } from "#model/enums.ts";
import { route } from "#platform/http/route.ts";
import { PlaybackPolicy, QueryId } from "#platform/http/schemas.ts";
import { streamedJson } from "#platform/http/stream.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  BandwidthField,
  CodecsField,
  DescriptionField,
  DurationSeconds,
  ExportedAt,
  ExternalIdField,
  HeightField,
  KindField,
  LabelField,
  LanguageField,
  ManifestPath,
  NameField,
  PathField,
  PlaylistPath,
  PrefixField,
  ProducerField,
  RecordId,
  SchemaVersion,
  SlugField,
  SourceField,
  SourceKey,
  StartMs,
  StatusField,
  StorageKey,
  TagsField,
  TenantIdField,
  TitleField,
  WidthField,
} from "#protocol/record-fields.ts";
import { pagesOf } from "#storage/db/pages.ts";
import { readBySize, rowBytes, type SizedRow } from "#storage/db/row-bytes.ts";
import {
  type AssetRow,
  assets,
  collections,
  type SubtitleRow,
  subtitles,
  type TenantRow,
  type TrackRow,
  tracks,
} from "#storage/db/schema.ts";
import { posterOf } from "../assets/poster.ts";
import { Tags } from "../assets/schema.ts";
import { requireTenant } from "../tenants/queries.ts";

/** Sizes that are read at once. */
const PAGE = 500;
const SCHEMA_VERSION = 1;

const Nullable = v.nullable(v.string());
const Place = v.object({ id: RecordId, name: NameField, slug: SlugField });
const NumberedFiles = v.object({
  before: v.pipe(v.string(), v.description("The path before the number")),
  digits: v.pipe(v.number(), v.description("The least number of digits, filled up with zeros")),
  first: v.pipe(v.number(), v.description("The first number")),
  last: v.pipe(v.number(), v.description("The last number")),
  after: v.pipe(v.string(), v.description("The path after the number")),
});
const SharedMedia = v.object({
  prefix: PrefixField,
  start_seconds: v.pipe(v.number(), v.description("The time in the media at which the clip begins")),
  segments: v.pipe(v.array(NumberedFiles), v.description("Segments")),
  objects: v.pipe(v.array(v.string()), v.description("Init segments and images")),
});
const TenantField = v.pipe(v.string(), v.description("The tenant"));
const Graph = v.object({
  schema_version: describedAs(SchemaVersion, v.literal(SCHEMA_VERSION)),
  exported_at: ExportedAt,
  tenant: TenantField,
  assets: v.pipe(
    v.array(
      v.object({
        id: RecordId,
        external_id: ExternalIdField,
        title: TitleField,
        description: describedAs(DescriptionField, Nullable),
        tags: describedAs(TagsField, Tags),
        duration_seconds: DurationSeconds,
        ownership: v.pipe(
          v.object({
            tenant_id: TenantIdField,
            tenant: TenantField,
            collection: v.pipe(v.nullable(Place), v.description("Fields of the collection")),
          }),
          v.description("Who owns the exported data"),
        ),
        provider: v.pipe(
          v.picklist(ASSET_PROVIDERS),
          v.description("Where the media are: `managed` by this service, or `external_serve`"),
        ),
        source_key: SourceKey,
        hls: v.pipe(
          v.object({
            manifest_path: describedAs(ManifestPath, Nullable),
            renditions: v.pipe(
              v.array(
                v.object({
                  width: v.nullable(WidthField),
                  height: v.nullable(HeightField),
                  bandwidth: BandwidthField,
                  codecs: CodecsField,
                  playlist_path: PlaylistPath,
                }),
              ),
              v.description("Variants of the video, by height"),
            ),
          }),
          v.description("The HLS manifests"),
        ),
        dash: v.pipe(
          v.object({ manifest_path: describedAs(ManifestPath, Nullable) }),
          v.description("The DASH manifest"),
        ),
        shared_media: v.pipe(
          v.nullable(SharedMedia),
          v.description("Of a clip: objects to which its manifests refer by these paths, but which are below `prefix`"),
        ),
        thumbnails: v.pipe(
          v.array(v.object({ kind: describedAs(KindField, v.picklist(["thumbnail", "storyboard"])), path: PathField })),
          v.description("Images"),
        ),
        subtitles: v.pipe(
          v.array(v.object({ language: LanguageField, label: LabelField, path: PathField })),
          v.description("Subtitles"),
        ),
        tracks: v.pipe(
          v.array(
            v.object({
              kind: KindField,
              name: NameField,
              status: StatusField,
              source: describedAs(SourceField, Nullable),
              producer: describedAs(ProducerField, Nullable),
              cues: v.pipe(
                v.nullable(v.array(v.looseObject({ start_ms: StartMs }))),
                v.description("Intervals with their content, by start"),
              ),
              storage_key: describedAs(StorageKey, Nullable),
            }),
          ),
          v.description("Tracks"),
        ),
        delivery: v.pipe(
          v.object({
            policy: v.pipe(PlaybackPolicy, v.description("Playback policy")),
            auth: v.pipe(v.picklist(["none", "playback_token"]), v.description("How playback is authorized")),
          }),
          v.description("How the media are delivered"),
        ),
        manifest_url: v.optional(v.pipe(v.string(), v.description("URL of externally served public media"))),
      }),
    ),
    v.description("The assets"),
  ),
});

export const graphRoutes = [
  route({
    method: "GET",
    path: "/api/v1/assets/graph_export",
    expensive: "export",
    scope: "assets:read",
    tag: "Assets",
    operationId: "exportGraph",
    summary: "Export all data needed to play a tenant's media without this service",
    query: v.object({ tenant_id: v.optional(v.pipe(QueryId, v.description("Required with the admin token"))) }),
    responses: { 200: Graph },
    errors: { 404: ["not_found"] },
    async handle(context) {
      const { app, caller, query } = context;
      const tenant = await requireTenant(app.db, caller, query.tenant_id);
      const name = `${tenant.slug}-graph.json`;
      return streamedJson(context, graphJson(app, tenant), {
        "content-disposition": `attachment; filename="${name}"`,
      });
    },
  }),
];

async function* graphJson(app: App, tenant: TenantRow): AsyncGenerator<string> {
  const head = { schema_version: SCHEMA_VERSION, exported_at: iso(app.clock.now()), tenant: tenant.slug };
  yield `${JSON.stringify(head).slice(0, -1)},"assets":[`;
  let separator = "";
  for await (const rows of assetGroups(app, tenant)) {
    const ids = rows.map(({ asset }) => asset.id);
    const texts = Map.groupBy(await subtitlesOf(app, ids), (row) => row.assetId);
    const timed = Map.groupBy(await trackIdsOf(app, ids), (row) => row.assetId);
    for (const { asset, collection } of rows) {
      const entry = toEntry(tenant, asset, { collection, subtitles: texts.get(asset.id) ?? [] });
      yield `${separator}${JSON.stringify(entry).slice(0, -1)},"tracks":[`;
      separator = ",";
      yield* tracksJson(app, timed.get(asset.id) ?? []);
      yield "]}";
    }
  }
  yield "]}";
}

/** A tenant's assets with their collections, newest first, in groups of limited size. */
async function* assetGroups(app: App, tenant: TenantRow) {
  const pages = pagesOf({ from: Number.MAX_SAFE_INTEGER, limit: PAGE, keyOf: ({ id }: SizedRow) => id }, (before) =>
    app.db
      .select({ id: assets.id, bytes: rowBytes(assets) })
      .from(assets)
      .where(and(eq(assets.tenantId, tenant.id), lt(assets.id, before)))
      .orderBy(desc(assets.id))
      .limit(PAGE)
      .all(),
  );
  const read = async (ids: number[]) => {
    const rows = await app.db
      .select({ asset: assets, collection: { id: collections.id, name: collections.name, slug: collections.slug } })
      .from(assets)
      .leftJoin(collections, eq(collections.id, assets.collectionId))
      .where(inArray(assets.id, ids))
      .all();
    return rows.map((row) => ({ id: row.asset.id, ...row }));
  };
  for await (const sized of pages) yield* readBySize(sized, read);
}

const subtitlesOf = (app: App, ids: number[]) =>
  app.db
    .select()
    .from(subtitles)
    .where(and(inArray(subtitles.assetId, ids), eq(subtitles.status, "ready")))
    .orderBy(asc(subtitles.position), asc(subtitles.language))
    .all();
/** Without their cues: an asset may have any number of tracks, each of 200 KB. */
const trackIdsOf = (app: App, ids: number[]) =>
  app.db
    .select({ id: tracks.id, assetId: tracks.assetId, bytes: rowBytes(tracks) })
    .from(tracks)
    .where(inArray(tracks.assetId, ids))
    .orderBy(asc(tracks.position), asc(tracks.name))
    .all();

/** A track that was deleted meanwhile is left out. */
async function* tracksJson(app: App, sized: readonly SizedRow[]): AsyncGenerator<string> {
  let separator = "";
  const groups = readBySize(sized, (ids) => app.db.select().from(tracks).where(inArray(tracks.id, ids)).all());
  for await (const rows of groups)
    for (const row of rows) {
      yield separator + JSON.stringify(toTrackEntry(row));
      separator = ",";
    }
}

type Parts = {
  collection: v.InferInput<typeof Place> | null;
  subtitles: SubtitleRow[];
};
type Entry = v.InferInput<typeof Graph>["assets"][number];

/** Object keys instead of URLs, which would point to this server and expire. */
function toEntry(tenant: TenantRow, asset: AssetRow, parts: Parts): Omit<Entry, "tracks"> {
  const isPublic = asset.playbackPolicy === "public";
  const imageOf = (kind: "thumbnail" | "storyboard", path: string | null) => (path === null ? [] : [{ kind, path }]);
  return {
    id: asset.id,
    external_id: asset.externalId,
    title: asset.title,
    description: asset.description,
    tags: asset.tags,
    duration_seconds: asset.durationSeconds,
    ownership: { tenant_id: tenant.id, tenant: tenant.slug, collection: parts.collection },
    provider: asset.provider,
    source_key: asset.sourceKey,
    hls: {
      manifest_path: asset.manifestPath,
      renditions: asset.renditions.map(({ width, height, bandwidth, codecs, playlist_path }) => ({
        width,
        height,
        bandwidth,
        codecs,
        playlist_path,
      })),
    },
    dash: { manifest_path: asset.dashManifestPath },
    shared_media: sharedMediaOf(asset),
    thumbnails: [...imageOf("thumbnail", posterOf(asset)), ...imageOf("storyboard", asset.storyboardPath)],
    subtitles: parts.subtitles.map(({ language, label, objectKey }) => ({ language, label, path: objectKey })),
    delivery: { policy: asset.playbackPolicy, auth: isPublic ? "none" : "playback_token" },
    ...(isPublic &&
      asset.provider === "external_serve" &&
      asset.manifestUrl !== null && { manifest_url: asset.manifestUrl }),
  };
}

const sharedMediaOf = ({ sharedPrefix, sharedMedia }: AssetRow): Entry["shared_media"] =>
  sharedPrefix === null || sharedMedia === null
    ? null
    : {
        prefix: sharedPrefix,
        start_seconds: sharedMedia.startSeconds,
        segments: sharedMedia.segments,
        objects: sharedMedia.objects,
      };

const toTrackEntry = ({
  kind,
  name,
  status,
  source,
  producer,
  cues,
  storageKey,
}: TrackRow): Entry["tracks"][number] => ({
  kind,
  name,
  status,
  source,
  producer,
  cues,
  storage_key: storageKey,
});
