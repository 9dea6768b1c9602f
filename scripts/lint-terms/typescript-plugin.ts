import type { TextlintPluginCreator } from "@textlint/types";
import jsTokens from "js-tokens";

type Parse = ReturnType<InstanceType<TextlintPluginCreator["Processor"]>["processor"]>["preProcess"];
type Document = Exclude<ReturnType<Parse>, { text: string } | Promise<unknown>>;

const COMMENT = /Comment$/;
const STRING = /^StringLiteral$|^NoSubstitutionTemplate$|^Template(Head|Middle|Tail)$|^JSX(String|Text)$/;
const EXTENSIONS = [".ts", ".tsx"];

/** Comments, strings and templates of TypeScript as a document of textlint; other tokens are left out. */
function parse(text: string): Document {
  const children: unknown[] = [];
  let index = 0;
  let isSql = false;
  let previous = "";
  let line = 1;
  let lineStart = 0;
  for (const token of jsTokens(text)) {
    const from = index;
    const start = { line, column: from - lineStart };
    index += token.value.length;
    for (let at = text.indexOf("\n", from); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) {
      line++;
      lineStart = at + 1;
    }
    if (/^(NoSubstitutionTemplate|TemplateHead)$/.test(token.type)) isSql = previous === "sql";
    if (!/WhiteSpace|LineTerminator/.test(token.type)) previous = token.value;
    // A string without a space is an identifier, and the names of columns do not change.
    const isProse = COMMENT.test(token.type) || (STRING.test(token.type) && token.value.includes(" ") && !isSql);
    if (!isProse) continue;
    const place = { range: [from, index], loc: { start, end: { line, column: index - lineStart } }, raw: token.value };
    children.push({ type: "Paragraph", ...place, children: [{ type: "Str", ...place, value: token.value }] });
  }
  const end = { line, column: text.length - lineStart };
  const loc = { start: { line: 1, column: 0 }, end };
  return { type: "Document", range: [0, text.length], loc, raw: text, children } as unknown as Document;
}

class Processor {
  availableExtensions() {
    return EXTENSIONS;
  }
  processor() {
    return {
      preProcess: parse,
      postProcess: (messages: never[], filePath = "<text>") => ({ messages, filePath }),
    };
  }
}

export const typescriptPlugin = { Processor } as unknown as TextlintPluginCreator;
