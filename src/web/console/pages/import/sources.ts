import { IMPORT_SOURCES, type ImportSourceName } from "#model/import-sources.ts";

/** Sources that have no name of their own. */
const TEXTS: { [Name in ImportSourceName]?: "directory" | "bucket" } = { folder: "directory", s3: "bucket" };

/** The name of a source for people. */
export const nameOf = (source: ImportSourceName, t: (text: "directory" | "bucket") => string): string => {
  const text = TEXTS[source];
  return text === undefined ? IMPORT_SOURCES[source].title : t(text);
};

/** The commands that import from a source, for a POSIX shell; people replace the capitals and the dots. */
export function commandsFor(source: ImportSourceName, server: string): string {
  const about: { required: readonly string[]; argument?: string } = IMPORT_SOURCES[source];
  const variables = ["VODBOX_KEY", ...about.required].map((name) => `export ${name}=…`);
  const command = ["vodbox import", source, ...(about.argument ? [about.argument] : [])].join(" ");
  return [`export VODBOX_SERVER=${server}`, ...variables, `${command} --dry-run`, command].join("\n");
}
