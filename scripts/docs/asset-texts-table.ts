import { ASSET_TEXTS } from "#protocol/asset-fields.ts";

export const assetTextsTable = (): string =>
  [
    "| Text | Meaning | Limit | In events |\n|---|---|---|---|",
    ...Object.entries(ASSET_TEXTS).map(
      ([name, { meaning, maxCharacters, isNullable, eventSample }]) =>
        `| \`${name}\` | ${meaning} | ${maxCharacters} characters, ${isNullable ? "or null" : "not blank"} | ${eventSample === null ? "no" : "yes"} |`,
    ),
    "",
  ].join("\n");
