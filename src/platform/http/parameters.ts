import { describedAs } from "#protocol/fields.ts";
import { AssetId, RecordId, TenantIdField } from "#protocol/record-fields.ts";
import { PathId, QueryId } from "./schemas.ts";

/** Parameters that many routes share, each with its description. */

export const AssetIdInPath = describedAs(AssetId, PathId);
export const RecordIdInPath = describedAs(RecordId, PathId);
export const TenantIdInQuery = describedAs(TenantIdField, QueryId);
