import * as v from "valibot";
import { describedAs, Name, Text } from "./fields.ts";
import { DescriptionField, TitleField } from "./record-fields.ts";

/** `field`: the schema of the text in responses, with its description. */
type TextField = v.GenericSchema<string>;
const required = <Field extends TextField>(field: Field, max: number) => ({
  input: describedAs(field, Name(max)),
  output: field,
  maxCharacters: max,
  isNullable: false,
});
const nullable = <Field extends TextField>(field: Field, max: number) => ({
  input: v.nullable(describedAs(field, Text(max))),
  output: v.nullable(field),
  maxCharacters: max,
  isNullable: true,
});

/**
 * The texts that describe an asset. The schemas of requests and responses, PATCH, tus metadata, CSV export and import,
 * event data and the table in docs/api.md are derived from this table: a new text needs an entry here and a column
 * whose name is the field's in camelCase. `eventSample` makes the text part of the data of asset events.
 */
export const ASSET_TEXTS = {
  title: { ...required(TitleField, 512), meaning: "Name of the video", eventSample: "Test event" },
  description: { ...nullable(DescriptionField, 10_000), meaning: "Longer text", eventSample: null },
};

type Texts = typeof ASSET_TEXTS;
export type AssetText = keyof Texts;
/** Values as clients give them. */
export type AssetTexts = { [Name in AssetText]: v.InferOutput<Texts[Name]["input"]> };
type InEvents = { [Name in AssetText as Texts[Name]["eventSample"] extends string ? Name : never]: Texts[Name] };

export const ASSET_TEXT_NAMES = Object.keys(ASSET_TEXTS) as AssetText[];

const mapTexts = <Result>(map: <Name extends AssetText>(text: Texts[Name]) => unknown, names = ASSET_TEXT_NAMES) =>
  Object.fromEntries(names.map((name) => [name, map(ASSET_TEXTS[name])])) as Result;

/** Entries of a request, all optional. */
export const textInputs = mapTexts<{ [Name in AssetText]: v.OptionalSchema<Texts[Name]["input"], undefined> }>(
  ({ input }) => v.optional(input),
);
/** Entries of a response. */
export const textOutputs = mapTexts<{ [Name in AssetText]: Texts[Name]["output"] }>(({ output }) => output);

const inEvents = ASSET_TEXT_NAMES.filter((name) => ASSET_TEXTS[name].eventSample !== null);
/** Entries of the data of asset events, and their values in the sample. */
export const eventTexts = mapTexts<{ [Name in keyof InEvents]: Texts[Name]["output"] }>(
  ({ output }) => output,
  inEvents,
);
export const eventTextSamples = mapTexts<{ [Name in keyof InEvents]: string }>(
  ({ eventSample }) => eventSample,
  inEvents,
);
export const EVENT_TEXT_NAMES = inEvents as (keyof InEvents)[];
