/** The XML that S3 uses: elements and text, without relevant attributes (REST API of Amazon S3). */

/** The content of every element `name`, in order; not for elements that contain others of the same name. */
export const elements = (xml: string, name: string): string[] =>
  [...xml.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`, "g"))].map(
    ([, inner]) => inner as string,
  );

/** The text of the first element `name`; empty when there is none. */
export const textOf = (xml: string, name: string): string => unescaped(elements(xml, name)[0] ?? "");

const NAMED: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

const unescaped = (text: string) =>
  text.replace(/&(#x[0-9a-fA-F]+|#\d+|lt|gt|amp|quot|apos);/g, (_, entity: string) =>
    entity.startsWith("#x")
      ? String.fromCodePoint(Number.parseInt(entity.slice(2), 16))
      : entity.startsWith("#")
        ? String.fromCodePoint(Number(entity.slice(1)))
        : (NAMED[entity] as string),
  );

export const escaped = (text: string) =>
  text.replace(/[<>&"']/g, (char) => `&${Object.keys(NAMED).find((name) => NAMED[name] === char)};`);
