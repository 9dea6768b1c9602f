import { type Camel, camel } from "#platform/http/records.ts";
import { ASSET_TEXT_NAMES, type AssetText, type AssetTexts, EVENT_TEXT_NAMES } from "#protocol/asset-fields.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";

type TextColumn = Camel<AssetText>;
/** The columns of the texts of an asset. */
export type TextValues = Pick<AssetRow, TextColumn>;

/** The column of each text. */
export const TEXT_COLUMNS = ASSET_TEXT_NAMES.map((name) => ({ name, column: camel(name) }));

/** Column values of the texts that are given. */
export const textColumns = <Given extends { [Name in AssetText]?: AssetTexts[Name] | undefined }>(given: Given) =>
  Object.fromEntries(
    TEXT_COLUMNS.flatMap(({ name, column }) => (given[name] === undefined ? [] : [[column, given[name]]])),
  ) as { [Name in keyof Given & AssetText as Camel<Name>]: Exclude<Given[Name], undefined> };

/** The texts of a row by their names in the API. */
export const textsOf = (row: TextValues) =>
  Object.fromEntries(TEXT_COLUMNS.map(({ name, column }) => [name, row[column]])) as AssetTexts;

/** The texts that are part of the data of asset events. */
export const eventTextsOf = (row: TextValues) =>
  Object.fromEntries(EVENT_TEXT_NAMES.map((name) => [name, row[camel(name)]])) as Pick<
    AssetTexts,
    (typeof EVENT_TEXT_NAMES)[number]
  >;

/** For `select`. */
export const textSelection = Object.fromEntries(TEXT_COLUMNS.map(({ column }) => [column, assets[column]])) as Pick<
  typeof assets,
  TextColumn
>;
