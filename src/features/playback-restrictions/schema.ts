import * as v from "valibot";
import { toRecord } from "#platform/http/records.ts";
import { CreatedAt, RecordId, TenantIdField, TenantIdFromClient, UpdatedAt } from "#protocol/record-fields.ts";
import type { PlaybackRestrictionRow } from "#storage/db/schema-playback-ids.ts";

const MAX_DOMAINS = 100;
const MAX_DOMAIN = 253;
/** Labels of letters, digits and hyphens; internationalized names in their ASCII form. */
const DOMAIN = /^(?:\*|(?:\*\.)?[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*)$/;

/** A host of pages, in lower case. */
export const Domain = v.pipe(
  v.string("must be a string"),
  v.maxLength(MAX_DOMAIN, `must have at most ${MAX_DOMAIN} characters`),
  v.toLowerCase(),
  v.regex(DOMAIN, "must be a domain such as example.com or *.example.com, or *"),
);
const entries = {
  allowed_domains: v.pipe(
    v.array(Domain, "must be an array of domains"),
    v.maxLength(MAX_DOMAINS, `must have at most ${MAX_DOMAINS} entries`),
    v.description("Hosts of pages: `example.com` is that host alone, `*.example.com` those below it, `*` any"),
  ),
  allow_no_referrer: v.pipe(
    v.boolean("must be true or false"),
    v.description("Whether requests without `Referer` and `Origin` are allowed, such as those of apps"),
  ),
  allow_no_user_agent: v.pipe(
    v.boolean("must be true or false"),
    v.description("Whether requests without `User-Agent` are allowed"),
  ),
};
export const RestrictionWrite = v.pipe(
  v.object({
    tenant_id: v.optional(TenantIdFromClient),
    allowed_domains: entries.allowed_domains,
    allow_no_referrer: v.optional(entries.allow_no_referrer, false),
    allow_no_user_agent: v.optional(entries.allow_no_user_agent, true),
  }),
  v.title("PlaybackRestrictionWrite"),
);
export const RestrictionPatch = v.pipe(v.partial(v.object(entries)), v.title("PlaybackRestrictionPatch"));

export const PlaybackRestriction = v.pipe(
  v.object({ id: RecordId, tenant_id: TenantIdField, ...entries, created_at: CreatedAt, updated_at: UpdatedAt }),
  v.title("PlaybackRestriction"),
);

export const toRestriction = (row: PlaybackRestrictionRow) => toRecord(PlaybackRestriction, row);
