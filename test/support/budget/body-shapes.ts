import { crc32, deflateSync } from "node:zlib";
import type { FuzzRoute } from "#scripts/fuzz/route-table.ts";

/** A body with about `bytes`. */
export type BodyShape = {
  name: string;
  type: string;
  make(bytes: number): string | Uint8Array;
  headers?: Record<string, string>;
};

const JSON_TYPE = "application/json";
export const times = (unit: string, bytes: number) =>
  unit.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(unit))));
const indexed = (bytes: number, one: (n: number) => string, between = "") => {
  const parts: string[] = [];
  for (let n = 0, length = 0; length < bytes; n++) {
    const part = one(n);
    parts.push(part);
    length += part.length + between.length;
  }
  return parts.join(between);
};

/** JSON that is not what any route expects. */
const JUNK: Record<string, (bytes: number) => string> = {
  "deep arrays": (bytes) => times("[", bytes / 2) + times("]", bytes / 2),
  "deep arrays that do not end": (bytes) => times("[", bytes),
  "deep objects": (bytes) => `${times('{"a":', bytes)}1${"}".repeat(Math.floor(bytes / 5))}`,
  "many keys": (bytes) => `{${indexed(bytes, (n) => `"k${n}":1`, ",")}}`,
  "keys that are numbers": (bytes) => `{${indexed(bytes, (n) => `"${(n * 7919) % 4294967291}":1`, ",")}}`,
  "one key repeated": (bytes) => `{${indexed(bytes, () => '"a":1', ",")}}`,
  "the prototype repeated": (bytes) => `{${indexed(bytes, () => '"__proto__":{}', ",")}}`,
  "a long number": (bytes) => `{"a":${times("9", bytes)}}`,
  "a long fraction": (bytes) => `{"a":0.${times("1", bytes)}}`,
  escapes: (bytes) => `{"a":"${times("\\u0041", bytes)}"}`,
  "half surrogates": (bytes) => `{"a":"${times("\\ud800", bytes)}"}`,
  spaces: (bytes) => `{${times(" ", bytes)}}`,
  "an array of arrays": (bytes) => `[${indexed(bytes, () => "[]", ",")}]`,
};

/** Values in the place of one field: of the wrong type, and as many as fit. */
const VALUES: Record<string, (bytes: number) => string> = {
  "a long string": (bytes) => `"${times("x", bytes)}"`,
  "a string of spaces": (bytes) => `"${times(" ", bytes)}x"`,
  "a string of line breaks": (bytes) => `"${times("\\n", bytes)}"`,
  "a string of digits": (bytes) => `"${times("9", bytes)}"`,
  "a string of accents": (bytes) => `"a${times("\u0301", bytes)}"`,
  "a string of dots": (bytes) => `"${times("a.", bytes)}"`,
  "a string of separators": (bytes) => `"${times("/", bytes)}"`,
  "a string of hyphens": (bytes) => `"${times("a-", bytes)}"`,
  "a string of ats": (bytes) => `"${times("@", bytes)}"`,
  "many nulls": (bytes) => `[${indexed(bytes, () => "null", ",")}]`,
  "many objects": (bytes) => `[${indexed(bytes, () => "{}", ",")}]`,
  "many strings": (bytes) => `[${indexed(bytes, (n) => `"${n}"`, ",")}]`,
  "many numbers": (bytes) => `[${indexed(bytes, (n) => String(n), ",")}]`,
  "many equal numbers": (bytes) => `[${indexed(bytes, () => "1", ",")}]`,
  "an object of nulls": (bytes) => `{${indexed(bytes, (n) => `"k${n}":null`, ",")}}`,
  "an object of strings": (bytes) => `{${indexed(bytes, (n) => `"k${n}":"v"`, ",")}}`,
};

/** JSON bodies of a route: its example with one field replaced, in any depth up to two, and what is no body of it at all. */
export function jsonShapes({ example }: FuzzRoute): BodyShape[] {
  const junk = Object.entries(JUNK).map(([name, make]) => ({ name, type: JSON_TYPE, make }));
  const known = (example ?? {}) as Record<string, unknown>;
  const paths: string[][] = [];
  for (const [name, value] of Object.entries(known)) {
    paths.push([name]);
    const item = Array.isArray(value) ? value[0] : value;
    if (typeof item === "object" && item !== null)
      for (const below of Object.keys(item)) paths.push(Array.isArray(value) ? [name, "0", below] : [name, below]);
  }
  paths.push(["unknown"]);
  const fields = paths.flatMap((path) =>
    Object.entries(VALUES).map(([name, value]) => ({
      name: `${path.join(".")}: ${name}`,
      type: JSON_TYPE,
      make: (bytes: number) => JSON.stringify(replaced(known, path, MARK)).replace(`"${MARK}"`, () => value(bytes)),
    })),
  );
  // Arrays with as many valid items as fit.
  const repeats = paths
    .filter(([name]) => name !== undefined && Array.isArray(known[name]) && (known[name] as unknown[]).length > 0)
    .map(([name]) => ({
      name: `${name}: its example repeated`,
      type: JSON_TYPE,
      make: (bytes: number) => {
        const item = JSON.stringify((known[name as string] as unknown[])[0]);
        const value = `[${indexed(bytes, () => item, ",")}]`;
        return JSON.stringify({ ...known, [name as string]: MARK }).replace(`"${MARK}"`, () => value);
      },
    }));
  return [...junk, ...fields, ...repeats];
}
const MARK = "~mark~";

function replaced(value: unknown, [name, ...rest]: string[], by: unknown): unknown {
  if (name === undefined) return by;
  if (Array.isArray(value)) return [replaced(value[0], rest, by)];
  const object = (value ?? {}) as Record<string, unknown>;
  return { ...object, [name]: replaced(object[name], rest, by) };
}

const BOUNDARY = "budget";
const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const part = (head: string, content: string) =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
const field = (name: string, content: string) => part(`name="${name}"`, content);
const file = (name: string, content: string) => part(`name="file"; filename="${name}"`, content);
const END = `--${BOUNDARY}--\r\n`;

/** Documents for a field `file`, by the ending of its name. */
const two = (n: number) => String(n).padStart(2, "0");
const at = (n: number) => `${two(Math.floor(n / 3600) % 100)}:${two(Math.floor(n / 60) % 60)}:${two(n % 60)}`;
const DOCUMENTS: Record<string, [ending: string, make: (bytes: number) => string]> = {
  "WebVTT of cues": [
    "vtt",
    (bytes) => `WEBVTT\n\n${indexed(bytes, (n) => `${at(n)}.000 --> ${at(n + 1)}.000\nx\n`, "\n")}`,
  ],
  "WebVTT of one time": ["vtt", (bytes) => `WEBVTT\n\n${times("00:00.000 --> 99:59:59.000\nx\n\n", bytes)}`],
  "WebVTT of tags": ["vtt", (bytes) => `WEBVTT\n\n00:00.000 --> 00:01.000\n${times("<b><c.a>", bytes)}\n`],
  "WebVTT of entities": ["vtt", (bytes) => `WEBVTT\n\n00:00.000 --> 00:01.000\n${times("&amp;&lt;&", bytes)}\n`],
  "WebVTT of settings": ["vtt", (bytes) => `WEBVTT\n\n00:00.000 --> 00:01.000 ${times("line:1 ", bytes)}\nx\n`],
  "WebVTT of notes": ["vtt", (bytes) => `WEBVTT\n\n${times("NOTE a\n\n", bytes)}`],
  "WebVTT of styles": ["vtt", (bytes) => `WEBVTT\n\n${times("STYLE\n::cue{}\n\n", bytes)}`],
  "WebVTT of lines": ["vtt", (bytes) => `WEBVTT\n\n00:00.000 --> 00:01.000\n${times("a\n", bytes)}`],
  "WebVTT of empty lines": ["vtt", (bytes) => `WEBVTT\n\n${times("\n", bytes)}`],
  "WebVTT of arrows": ["vtt", (bytes) => `WEBVTT\n\n${times("-->", bytes)}`],
  "WebVTT with timestamp maps": [
    "vtt",
    (bytes) => `WEBVTT\n${times("X-TIMESTAMP-MAP=MPEGTS:1,LOCAL:00:00:00.000\n", bytes)}`,
  ],
  "SRT of cues": ["srt", (bytes) => indexed(bytes, (n) => `${n + 1}\n${at(n)},000 --> ${at(n + 1)},000\nx\n`, "\n")],
  "SRT of indexes": ["srt", (bytes) => times("1\n", bytes)],
  "SRT of styles": ["srt", (bytes) => `1\n00:00:00,000 --> 00:00:01,000\n${times("{\\an8}<font color=a>\\N", bytes)}`],
  "SRT of carriage returns": ["srt", (bytes) => `1\r\n00:00:00,000 --> 00:00:01,000\r\n${times("a\r", bytes)}`],
  "TTML of cues": [
    "ttml",
    (bytes) =>
      `<tt><body><div>${indexed(bytes, (n) => `<p begin="${n}s" end="${n + 1}s">x</p>`, "\n")}</div></body></tt>`,
  ],
  "TTML of words": [
    "ttml",
    (bytes) => `<tt><body><div><p end="1s">${times("<span>x</span> ", bytes)}</p></div></body></tt>`,
  ],
  zeros: ["vtt", (bytes) => times("\0", bytes)],
};

/** Forms: their documents, and their framing. */
export function formShapes(fields: Record<string, string>): BodyShape[] {
  const own = Object.entries(fields)
    .map(([name, value]) => field(name, value))
    .join("");
  const form = (name: string, make: BodyShape["make"], type = FORM_TYPE): BodyShape => ({
    name: `form: ${name}`,
    type,
    make,
  });
  const small = file("a.vtt", "WEBVTT\n");
  return [
    ...Object.entries(DOCUMENTS).map(([name, [ending, make]]) =>
      form(name, (bytes) => own + file(`a.${ending}`, make(bytes)) + END),
    ),
    ...Object.keys(fields).map((name) =>
      form(`a large ${name}`, (bytes) => field(name, times("x", bytes)) + own + small + END),
    ),
    form("many fields", (bytes) => times(field("a", "1"), bytes) + own + small + END),
    form("many files", (bytes) => times(file("a.vtt", "x"), bytes) + own + END),
    form("a long name of a field", (bytes) => field(times("x", bytes), "1") + own + small + END),
    form("a long name of a file", (bytes) => own + file(times("x", bytes), "WEBVTT\n") + END),
    form("a long header of a part", (bytes) => `--${BOUNDARY}\r\nX: ${times("a", bytes)}\r\n\r\n${END}`),
    form("many headers of a part", (bytes) => `--${BOUNDARY}\r\n${times("X: a\r\n", bytes)}\r\n${END}`),
    form(
      "many parameters of a part",
      (bytes) => `--${BOUNDARY}\r\nContent-Disposition: form-data${times("; a=b", bytes)}\r\n\r\n${END}`,
    ),
    form(
      "many quotes in a part's header",
      (bytes) => `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${times('\\"', bytes)}\r\n\r\n${END}`,
    ),
    form("almost boundaries", (bytes) => own + file("a.vtt", times("\r\n--budge", bytes)) + END),
    form("line breaks", (bytes) => own + file("a.vtt", times("\r\n", bytes)) + END),
    form("hyphens", (bytes) => own + file("a.vtt", times("-", bytes)) + END),
    form("a preamble", (bytes) => times("a\r\n", bytes) + own + small + END),
    form("boundaries alone", (bytes) => times(`--${BOUNDARY}\r\n`, bytes)),
    form("no end", (bytes) => own + part('name="file"; filename="a.vtt"', times("a", bytes))),
    form("a short boundary", (bytes) => times("\r\n-", bytes), "multipart/form-data; boundary=-"),
  ];
}

const chunk = (type: string, data: Uint8Array) => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  const sum = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
};
const png = (size: number, more: (bytes: number) => Uint8Array) => (bytes: number) => {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 6, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk("IHDR", header),
    more(bytes),
    chunk("IDAT", deflateSync(Buffer.alloc(size * (4 * size + 1)))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
};
const jpeg = (unit: string) => (bytes: number) =>
  Buffer.concat([Buffer.from("ffd8", "hex"), Buffer.from(times(unit, 2 * bytes), "hex"), Buffer.from("ffd9", "hex")]);

const NO_BYTES = new Uint8Array();
const IMAGES: [name: string, type: string, make: (bytes: number) => Uint8Array][] = [
  [
    "PNG of many chunks",
    "image/png",
    png(4, (bytes) =>
      Buffer.from(
        chunk("tEXt", NO_BYTES)
          .toString("hex")
          .repeat(bytes / 12),
        "hex",
      ),
    ),
  ],
  ["PNG with a large chunk", "image/png", png(4, (bytes) => chunk("tEXt", new Uint8Array(bytes)))],
  ["PNG of 4096 by 4096", "image/png", png(1024, () => NO_BYTES)],
  ["JPEG of many segments", "image/jpeg", jpeg("ffe00002")],
  ["JPEG of fill bytes", "image/jpeg", jpeg("ffff")],
  [
    "WebP of many chunks",
    "image/webp",
    (bytes) => Buffer.from(`52494646ffffffff57454250${"5650385800000000".repeat(bytes / 8)}`, "hex"),
  ],
  ["zeros as PNG", "image/png", (bytes) => new Uint8Array(bytes)],
];
const CSV: Record<string, (bytes: number) => string> = {
  rows: (bytes) => `title,description,tags,original_filename\n${indexed(bytes, (n) => `t${n},d,,f${n}.mp4`, "\n")}`,
  "rows of one file": (bytes) => `title,original_filename\n${times("t,clip.mp4\n", bytes)}`,
  columns: (bytes) => `original_filename${indexed(bytes, (n) => `,c${n}`)}\nclip.mp4`,
  "columns of one name": (bytes) => `original_filename${times(",a", bytes)}\nclip.mp4`,
  commas: (bytes) => times(",", bytes),
  quotes: (bytes) => times('"', bytes),
  "pairs of quotes": (bytes) => `original_filename\n"${times('""', bytes)}"`,
  "a quote that does not end": (bytes) => `original_filename\n"${times("a\n", bytes)}`,
  "empty lines": (bytes) => `original_filename\n${times("\n", bytes)}`,
  "carriage returns": (bytes) => `original_filename\n${times("\r", bytes)}`,
  tags: (bytes) => `original_filename,tags\nclip.mp4,"${indexed(bytes, (n) => `a${n}=b`, ";")}"`,
  "a long cell": (bytes) => `original_filename,title\nclip.mp4,${times("x", bytes)}`,
};

/** Bodies of a route that reads bytes: of each kind that such a route takes. */
export function rawShapes(): BodyShape[] {
  const junk = Object.entries(JUNK).flatMap(([name, make]) => [{ name: `JSON: ${name}`, type: JSON_TYPE, make }]);
  const events = (name: string, one: (n: number) => string): BodyShape => ({
    name: `events: ${name}`,
    type: "text/plain",
    make: (bytes) => `{"events":[${indexed(Math.min(bytes, 60_000), one, ",")}]}`,
  });
  return [
    ...junk,
    ...IMAGES.map(([name, type, make]) => ({ name, type, make })),
    ...Object.entries(CSV).map(([name, make]) => ({ name: `CSV: ${name}`, type: "text/csv", make })),
    events("many", (n) => `{"asset_id":${n},"session_id":"s","event":"play"}`),
    events("of strings", () => '"a"'),
    events("with a long session", () => `{"asset_id":1,"event":"play","session_id":"${"x".repeat(900)}"}`),
    events(
      "with many fields",
      () => `{"asset_id":1,"event":"play","session_id":"s",${indexed(900, (n) => `"k${n}":1`, ",")}}`,
    ),
    { name: "bytes", type: "application/octet-stream", make: (bytes) => new Uint8Array(bytes) },
    {
      name: "bytes of a resumable upload",
      type: "application/offset+octet-stream",
      headers: { "tus-resumable": "1.0.0", "upload-offset": "0", "upload-length": "1000000" },
      make: (bytes) => new Uint8Array(bytes),
    },
  ];
}
