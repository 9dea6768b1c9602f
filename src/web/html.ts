const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Trusted markup. Only `html` creates it. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const render = (value: unknown): string => {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(render).join("");
  if (value === null || value === undefined || value === false) return "";
  return String(value).replaceAll(/[&<>"']/g, (character) => ESCAPES[character] as string);
};

/** Escapes every value for text and quoted attributes unless it is Markup: the default is safe. */
export const html = (parts: TemplateStringsArray, ...values: unknown[]) =>
  new Markup(
    parts.reduce((text, part, index) => text + part + (index < values.length ? render(values[index]) : ""), ""),
  );
