import * as v from "valibot";
import { HttpError } from "#lib/base";
import { MATCH_KINDS } from "#lib/search";
import { tenantFor } from "#platform/http/caller.ts";
import { route } from "#platform/http/route.ts";
import { PageLimit, QueryId, Text } from "#platform/http/schemas.ts";
import { oneOf } from "#protocol/fields.ts";
import { AssetId, TitleField } from "#protocol/record-fields.ts";
import { languageOf } from "../subtitles/content.ts";
import { find } from "./find.ts";
import { indexChanges } from "./index-texts.ts";

const DEFAULT_LIMIT = 20;
const MAX_QUERY = 500;

const Match = v.object({
  kind: v.pipe(oneOf(MATCH_KINDS), v.description("Where the text was found")),
  text: v.pipe(v.string(), v.description("The line; an excerpt of a long one")),
  start_ms: v.optional(v.pipe(v.number(), v.description("When it begins, in ms; only captions and chapters"))),
});
const SearchResult = v.pipe(
  v.object({
    asset_id: AssetId,
    title: TitleField,
    matches: v.pipe(v.array(Match), v.description("At most five: the best lines, by kind and time")),
  }),
  v.title("SearchResult"),
);

/** The search in everything that an asset says about itself. */
export const searchRoute = route({
  tag: "Assets",
  method: "GET",
  path: "/api/v1/search",
  operationId: "searchAssets",
  summary: "Search titles, descriptions, captions and chapters, best results first",
  expensive: "search",
  query: v.object({
    q: v.pipe(
      Text(MAX_QUERY),
      v.description("Words, or beginnings of words, that an asset must have; without regard to case and diacritics"),
    ),
    limit: v.optional(v.pipe(PageLimit, v.description(`1 to 500 results; default ${DEFAULT_LIMIT}`))),
    language: v.optional(
      v.pipe(Text(100), v.description("Of captions, only those in this language (BCP 47); `pt` includes `pt-BR`")),
    ),
    tenant_id: v.optional(v.pipe(QueryId, v.description("Required with the admin token"))),
  }),
  responses: { 200: v.array(SearchResult) },
  errors: { 404: ["not_found"], 422: ["parameter_missing", "invalid_language"] },
  async handle({ app, caller, query }) {
    const tenantId = tenantFor(caller, query.tenant_id);
    if (tenantId === undefined)
      throw new HttpError(422, "parameter_missing", "tenant_id: is required with the admin token");
    const language = query.language === undefined ? undefined : languageOf(query.language);
    await indexChanges(app, tenantId);
    return find(app, { tenantId, q: query.q, limit: query.limit ?? DEFAULT_LIMIT, language });
  },
});
