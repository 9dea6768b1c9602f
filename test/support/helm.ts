import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments, stringify } from "yaml";

/**
 * Renders a Helm chart as far as our own needs it: Go's `text/template` with `if`, `with`, `range`, `define`, variables, pipelines
 * and trimmed white space, and the few functions of Sprig and Helm below. Anything else is an error, so that a template cannot use
 * what is not rendered as Helm does. No package renders these templates, and no package of the system has Helm.
 */

type Value = unknown;
type Expression =
  | { kind: "literal"; value: Value }
  | { kind: "path"; from: Expression | { kind: "dot" } | { kind: "variable"; name: string }; fields: string[] }
  | { kind: "call"; name: string; args: Expression[] }
  | { kind: "pipe"; first: Expression; then: { name: string; args: Expression[] }[] };
type Branch = { condition: Expression | null; body: Node[] };
type Node =
  | { kind: "text"; text: string }
  | { kind: "value"; expression: Expression }
  | { kind: "assign"; name: string; expression: Expression }
  | { kind: "if" | "with"; branches: Branch[] }
  | { kind: "range"; names: string[]; expression: Expression; body: Node[] };
type Scope = { dot: Value; root: Value; variables: Map<string, Value> };
type Ended = { nodes: Node[]; end: string; rest: string };
type Defined = Map<string, Node[]>;

const TOKEN = /"(?:[^"\\]|\\.)*"|`[^`]*`|\$\w*|(?:\.\w+)+|\.|-?\d+|\w+|:=|[(),|]/y;

class Parser {
  readonly #parts: { text: string; action: boolean }[];
  readonly #defined: Defined;
  #at = 0;

  constructor(source: string, defined: Defined) {
    this.#defined = defined;
    const parts = source.split(/\{\{(.*?)\}\}/s).map((text, index) => ({ text, action: index % 2 === 1 }));
    for (const [index, part] of parts.entries()) {
      if (!part.action) continue;
      const [before, after] = [parts[index - 1], parts[index + 1]];
      if (/^-\s/.test(part.text) && before) before.text = before.text.trimEnd();
      if (/\s-$/.test(part.text) && after) after.text = after.text.trimStart();
      part.text = part.text.replace(/^-\s/, "").replace(/\s-$/, "").trim();
    }
    this.#parts = parts;
  }

  /** Nodes up to one of the words that end them, which is returned with the rest of its action; without words, all. */
  body(...ends: string[]): Ended {
    const nodes: Node[] = [];
    for (; this.#at < this.#parts.length; ) {
      const { text, action } = this.#parts[this.#at++] as { text: string; action: boolean };
      if (!action) nodes.push({ kind: "text", text });
      else if (!text.startsWith("/*")) {
        const [, word = "", rest = ""] = /^(\w*)\s*(.*)$/s.exec(text) ?? [];
        if (ends.includes(word)) return { nodes, end: word, rest };
        const node = this.#node(word, rest, text);
        if (node) nodes.push(node);
      }
    }
    if (ends.length > 0) throw new Error(`${ends.join(" or ")} is missing`);
    return { nodes, end: "", rest: "" };
  }

  #node(word: string, rest: string, text: string): Node | null {
    if (word === "if" || word === "with") return { kind: word, branches: this.#branches(word, rest) };
    if (word === "define") {
      this.#defined.set(JSON.parse(rest) as string, this.body("end").nodes);
      return null;
    }
    if (word === "range") {
      const [, names = "", source = rest] = /^((?:\$\w+\s*,?\s*)+):=\s*(.*)$/s.exec(rest) ?? [];
      const { nodes } = this.body("end");
      return { kind: "range", names: names.match(/\w+/g) ?? [], expression: expressionOf(source), body: nodes };
    }
    const [, name, assigned = ""] = /^\$(\w+)\s*:=\s*(.*)$/s.exec(text) ?? [];
    if (name !== undefined) return { kind: "assign", name, expression: expressionOf(assigned) };
    return { kind: "value", expression: expressionOf(text) };
  }

  #branches(word: string, condition: string): Branch[] {
    const branches: Branch[] = [];
    for (let next: string | null = condition; ; ) {
      const { nodes, end, rest }: Ended = next === null ? this.body("end") : this.body("end", "else");
      branches.push({ condition: next === null ? null : expressionOf(next), body: nodes });
      if (end === "end") return branches;
      next = rest === "" ? null : rest.replace(new RegExp(`^${word}\\s+`), "");
    }
  }
}

function expressionOf(source: string): Expression {
  const tokens: string[] = [];
  for (let at = 0; at < source.length; ) {
    const space = /\s*/y;
    space.lastIndex = at;
    at += space.exec(source)?.[0].length ?? 0;
    if (at === source.length) break;
    TOKEN.lastIndex = at;
    const [token] = TOKEN.exec(source) ?? [];
    if (token === undefined) throw new Error(`Not understood: ${source.slice(at)}`);
    // A field directly behind a parenthesis belongs to it.
    tokens.push(token.startsWith(".") && source[at - 1] === ")" ? `)${token}` : token);
    at += token.length;
  }
  const expression = pipeline(tokens);
  if (tokens.length > 0) throw new Error(`Too much: ${tokens.join(" ")} in ${source}`);
  return expression;
}

function pipeline(tokens: string[]): Expression {
  const first = command(tokens);
  const then: { name: string; args: Expression[] }[] = [];
  while (tokens[0] === "|") {
    tokens.shift();
    const next = command(tokens);
    if (next.kind !== "call") throw new Error("Only functions follow |");
    then.push(next);
  }
  return then.length === 0 ? first : { kind: "pipe", first, then };
}

function command(tokens: string[]): Expression {
  const name = tokens[0] ?? "";
  if (!/^[A-Za-z]\w*$/.test(name) || ["true", "false", "nil"].includes(name)) return operand(tokens);
  tokens.shift();
  const args: Expression[] = [];
  while (tokens.length > 0 && tokens[0] !== "|" && tokens[0] !== ")") args.push(operand(tokens));
  return { kind: "call", name, args };
}

function operand(tokens: string[]): Expression {
  const token = tokens.shift() ?? "";
  if (token === "(") {
    const inner = pipeline(tokens);
    if (tokens.shift() !== ")") throw new Error(") is missing");
    if (!tokens[0]?.startsWith(").")) return inner;
    return { kind: "path", from: inner, fields: (tokens.shift() as string).slice(2).split(".") };
  }
  if (token.startsWith('"')) return { kind: "literal", value: JSON.parse(token) };
  if (token.startsWith("`")) return { kind: "literal", value: token.slice(1, -1) };
  if (/^-?\d+$/.test(token)) return { kind: "literal", value: Number(token) };
  if (token === "true" || token === "false") return { kind: "literal", value: token === "true" };
  if (token === "nil") return { kind: "literal", value: null };
  if (token.startsWith("$")) {
    const fields = tokens[0]?.startsWith(".") ? (tokens.shift() as string).slice(1).split(".") : [];
    return { kind: "path", from: { kind: "variable", name: token.slice(1) }, fields };
  }
  if (token.startsWith("."))
    return { kind: "path", from: { kind: "dot" }, fields: token === "." ? [] : token.slice(1).split(".") };
  if (/^[A-Za-z]\w*$/.test(token)) return { kind: "call", name: token, args: [] };
  throw new Error(`Not understood: ${token}`);
}

const isEmpty = (value: Value): boolean =>
  value == null ||
  value === false ||
  value === 0 ||
  value === "" ||
  (typeof value === "object" && Object.keys(value).length === 0);
const text = (value: Value): string => (value == null ? "" : String(value));
const indent = (count: number, value: string) => value.replace(/^/gm, " ".repeat(count));

const FUNCTIONS: Record<string, (...args: any[]) => Value> = {
  and: (...all) => all.find(isEmpty) ?? (all.some(isEmpty) ? all.find(isEmpty) : all.at(-1)),
  or: (...all) => all.find((one) => !isEmpty(one)) ?? all.at(-1),
  not: isEmpty,
  eq: (one, ...others) => others.some((other) => other === one),
  gt: (one, other) => one > other,
  int: Number,
  default: (otherwise, value) => (isEmpty(value) ? otherwise : value),
  quote: (value) => (value == null ? "" : JSON.stringify(String(value))),
  toYaml: (value) => stringify(value, { sortMapEntries: true, lineWidth: 0, indentSeq: false }).trimEnd(),
  indent,
  nindent: (count, value) => `\n${indent(count, value)}`,
  trunc: (count, value) => value.slice(0, count),
  trimSuffix: (suffix, value) => (value.endsWith(suffix) ? value.slice(0, -suffix.length) : value),
  printf: (format: string, ...values) => {
    const rest = [...values];
    return format.replace(/%([sdv])/g, () => text(rest.shift()));
  },
  required: (message, value) => {
    if (value == null || value === "") throw new Error(message);
    return value;
  },
  fail: (message) => {
    throw new Error(message);
  },
};

class Renderer {
  readonly #defined: Defined;
  constructor(defined: Defined) {
    this.#defined = defined;
  }

  render(nodes: readonly Node[], scope: Scope): string {
    return nodes.map((node) => this.#node(node, scope)).join("");
  }

  #node(node: Node, scope: Scope): string {
    const inner = (dot: Value, more: [string, Value][] = []): Scope => ({
      ...scope,
      dot,
      variables: new Map([...scope.variables, ...more]),
    });
    if (node.kind === "text") return node.text;
    if (node.kind === "value") return text(this.#value(node.expression, scope));
    if (node.kind === "assign") {
      scope.variables.set(node.name, this.#value(node.expression, scope));
      return "";
    }
    if (node.kind === "range") {
      const source = (this.#value(node.expression, scope) ?? {}) as Record<string, Value>;
      const [first, second] = node.names;
      const entries = Object.entries(source).sort(([a], [b]) => (Array.isArray(source) ? 0 : a < b ? -1 : 1));
      return entries
        .map(([key, value]) => {
          const named: [string, Value][] = second
            ? [
                [first ?? "", key],
                [second, value],
              ]
            : first
              ? [[first, value]]
              : [];
          return this.render(node.body, inner(value, named));
        })
        .join("");
    }
    for (const { condition, body } of node.branches) {
      const value = condition === null ? true : this.#value(condition, scope);
      if (!isEmpty(value)) return this.render(body, inner(node.kind === "with" && condition ? value : scope.dot));
    }
    return "";
  }

  #value(expression: Expression, scope: Scope): Value {
    if (expression.kind === "literal") return expression.value;
    if (expression.kind === "call") return this.#call(expression.name, expression.args, scope);
    if (expression.kind === "pipe")
      return expression.then.reduce(
        (value, { name, args }) => this.#call(name, [...args, { kind: "literal", value }], scope),
        this.#value(expression.first, scope),
      );
    const { from, fields } = expression;
    let value: any;
    if (from.kind === "dot") value = scope.dot;
    else if (from.kind !== "variable") value = this.#value(from, scope);
    else if (from.name === "") value = scope.root;
    else if (scope.variables.has(from.name)) value = scope.variables.get(from.name);
    else throw new Error(`$${from.name} is not defined`);
    for (const field of fields) {
      // A field of what is missing is an error in Go, and a missing field of a map is nothing.
      if (value == null) throw new Error(`nil pointer evaluating .${fields.join(".")}`);
      value = Object.hasOwn(value, field) ? value[field] : undefined;
    }
    return value;
  }

  #call(name: string, args: Expression[], scope: Scope): Value {
    const values = args.map((one) => this.#value(one, scope));
    if (name === "include") {
      const [template, dot] = values as [string, Value];
      const nodes = this.#defined.get(template);
      if (!nodes) throw new Error(`template "${template}" is not defined`);
      return this.render(nodes, { dot, root: dot, variables: new Map() });
    }
    const call = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
    if (!call) throw new Error(`function "${name}" is not rendered here`);
    return call(...values);
  }
}

export type Manifest = { apiVersion: string; kind: string; metadata: { name: string }; spec?: any } & Record<
  string,
  any
>;
export type Chart = {
  chart: { name: string; version: string; appVersion: string };
  values: Record<string, any>;
  /** The texts of the templates with these values, by file. Throws what `required` and `fail` say. */
  texts(values: object, release?: string): Record<string, string>;
  /** The objects in them. */
  render(values: object, release?: string): Manifest[];
};

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
/** As Helm merges values: maps by key, everything else is replaced. */
export function merged(base: Record<string, unknown>, more: Record<string, unknown>): Record<string, unknown> {
  const result = { ...base };
  for (const [key, value] of Object.entries(more)) {
    const before = result[key];
    result[key] = isMap(before) && isMap(value) ? merged(before, value) : value;
  }
  return result;
}

/** The chart in a folder. */
export function readChart(folder: string): Chart {
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  const chart = parse(read("Chart.yaml")) as Chart["chart"];
  const values = parse(read("values.yaml")) as Record<string, unknown>;
  const defined: Defined = new Map();
  const files = readdirSync(join(folder, "templates")).map((name) => {
    return { name, nodes: new Parser(read(`templates/${name}`), defined).body().nodes };
  });
  const texts = (given: object, release = "vodbox") => {
    const root = {
      Values: merged(values, given as Record<string, unknown>),
      Release: { Name: release, Namespace: "video", Service: "Helm" },
      Chart: { Name: chart.name, Version: chart.version, AppVersion: chart.appVersion },
    };
    const renderer = new Renderer(defined);
    const rendered = files.map(({ name, nodes }) => [
      name,
      renderer.render(nodes, { dot: root, root, variables: new Map() }),
    ]);
    return Object.fromEntries(rendered) as Record<string, string>;
  };
  return {
    chart,
    values: values as Record<string, any>,
    texts,
    render: (given, release) =>
      Object.entries(texts(given, release))
        .filter(([name]) => name.endsWith(".yaml"))
        .flatMap(([name, content]) =>
          parseAllDocuments(content, { uniqueKeys: true }).flatMap((document) => {
            if (document.errors.length > 0) throw new Error(`${name}: ${document.errors[0]?.message}\n${content}`);
            return (document.toJS() as Manifest | null) ?? [];
          }),
        ),
  };
}
