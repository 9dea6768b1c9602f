import { EVENTS } from "#platform/events/catalog.ts";

export const eventsTable = (): string =>
  [
    "| Event | Emitted when | `data` |\n|---|---|---|",
    ...Object.entries(EVENTS).map(
      ([type, { description, sample }]) =>
        `| \`${type}\` | ${description} | ${Object.keys(sample)
          .map((field) => `\`${field}\``)
          .join(", ")} |`,
    ),
    "",
  ].join("\n");
