import fc from "fast-check";

/** Valid and malformed documents of every kind that clients write. */
export type FuzzDocument = { extension: "m3u8" | "mpd" | "vtt" | "srt" | "ttml" | "csv"; text: string };

const word = fc.oneof(
  fc.constantFrom(
    "a",
    "1.m4s",
    "../x",
    "/x",
    "https://example.com/",
    "",
    "%",
    "%2e",
    "\\",
    "?",
    "#",
    "\u2028",
    "é",
    "😀",
  ),
  fc.string({ maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 6 }),
);
const number = fc.oneof(
  fc.nat(100).map(String),
  fc.constantFrom("-1", "0", "999999999999999", "9999999999999999999", "1e9", "0.5", "NaN", "", " 1"),
);
const lineBreak = fc.constantFrom("\n", "\n", "\n", "\r\n", "\r", "\n\n", "");
/** Many repetitions, up to a few hundred kilobytes. */
const repeated = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(
        '"',
        ",",
        "<",
        "<!--",
        " ",
        "a=",
        "-->",
        "9",
        "\r\n",
        "\0",
        "\ufeff",
        "&",
        'A="',
        "$Number$",
        "\ud800",
      ),
      word,
    ),
    fc.constantFrom(1, 2, 10, 1000, 50_000),
  )
  .map(([unit, times]) => unit.repeat(times));
const noise = fc.oneof({ weight: 6, arbitrary: word }, { weight: 1, arbitrary: repeated });

const lines = (line: fc.Arbitrary<string>, maxLength = 30) =>
  fc.array(fc.tuple(line, lineBreak), { maxLength }).map((all) => all.map((pair) => pair.join("")).join(""));

const attribute = fc
  .tuple(
    fc.constantFrom(
      "URI",
      "TYPE",
      "GROUP-ID",
      "NAME",
      "SUBTITLES",
      "BANDWIDTH",
      "RESOLUTION",
      "METHOD",
      "BYTERANGE",
      "CODECS",
      "x",
    ),
    fc.oneof(
      noise.map((value) => `"${value}"`),
      number,
      fc.constantFrom("SUBTITLES", "NONE", "1x1", '"'),
    ),
  )
  .map((pair) => pair.join("="));
const attributes = fc.array(attribute, { maxLength: 6 }).map((all) => all.join(","));
const hls = lines(
  fc.oneof(
    noise,
    number.map((seconds) => `#EXTINF:${seconds},`),
    fc
      .tuple(
        fc.constantFrom("STREAM-INF", "MEDIA", "MAP", "KEY", "I-FRAME-STREAM-INF", "DATERANGE", "DEFINE"),
        attributes,
      )
      .map(([tag, list]) => `#EXT-X-${tag}:${list}`),
    fc.tuple(number, number).map(([length, offset]) => `#EXT-X-BYTERANGE:${length}@${offset}`),
    fc.constant("#EXT-X-ENDLIST"),
  ),
).map((text) => `#EXTM3U\n${text}`);

const xmlName = fc.constantFrom(
  ...[
    "MPD",
    "Period",
    "AdaptationSet",
    "Representation",
    "SegmentTemplate",
    "SegmentTimeline",
    "S",
    "BaseURL",
    "SegmentList",
  ],
  ...["SegmentURL", "SegmentBase", "Initialization", "ProgramInformation", "Location", "x"],
);
const xmlAttributes = fc
  .array(
    fc.tuple(
      fc.constantFrom(
        "media",
        "initialization",
        "duration",
        "timescale",
        "startNumber",
        "endNumber",
        "t",
        "d",
        "r",
        "id",
        "sourceURL",
        "range",
        "mediaRange",
      ),
      fc.oneof(
        number,
        noise,
        fc.constantFrom("$Number$", "$Time$", "$Number%099d$.m4s", "$RepresentationID$/$Number$", "0-1"),
      ),
    ),
    { maxLength: 4 },
  )
  .map((all) => all.map(([name, value]) => ` ${name}="${value}"`).join(""));
const { element } = fc.letrec<{ element: string; children: string }>((tie) => ({
  children: fc
    .array(fc.oneof({ weight: 4, arbitrary: tie("element") }, { weight: 1, arbitrary: noise }), { maxLength: 3 })
    .map((all) => all.join("")),
  element: fc.oneof(
    { depthSize: "small" },
    fc.tuple(xmlName, xmlAttributes).map(([name, list]) => `<${name}${list}/>`),
    fc
      .tuple(xmlName, xmlAttributes, tie("children"))
      .map(([name, list, inner]) => `<${name}${list}>${inner}</${name}>`),
  ),
}));
const template = xmlAttributes.map(
  (list) =>
    `<MPD type="static" mediaPresentationDuration="PT60S"><Period><AdaptationSet><Representation id="a"><SegmentTemplate${list}/></Representation></AdaptationSet></Period></MPD>`,
);

const time = fc.oneof(
  fc.nat(3600).map((seconds) => new Date(seconds * 1000).toISOString().slice(11, 23)),
  fc.constantFrom("00:00.000", "99:99:99.999", "999999999:00:00.000", "0", ""),
);
const timing = fc
  .tuple(time, fc.constantFrom(" --> ", "-->", " -> ", "\t-->\t", " "), time, noise)
  .map((parts) => parts.join(""));
const timed = lines(
  fc.oneof(
    timing,
    noise,
    fc.constantFrom(
      "",
      "NOTE",
      "STYLE",
      "REGION",
      "<b>x</b>",
      "<v A>x",
      "<00:00.500>",
      "sheet.jpg#xywh=0,0,1,1",
      "1",
      "a\\Nb",
      "\u001a",
      "WEBVTT",
    ),
    fc.constantFrom("X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:01.000", "x-timestamp-map = local: 00:01,5"),
  ),
);

const ttmlTime = fc.oneof(
  time,
  fc.constantFrom("1s", "00:00:01:12", "1500ms", "45f", "10t", "9h", 'wallclock("2000")'),
  noise,
);
const ttmlAttributes = fc
  .array(
    fc.oneof(
      fc.tuple(fc.constantFrom("begin", "end", "dur"), ttmlTime),
      fc.tuple(
        fc.constantFrom("timeContainer", "style", "region", "xml:lang", "xml:space", "xml:id"),
        fc.oneof(noise, fc.constantFrom("seq", "a", "preserve", "de")),
      ),
      fc.tuple(
        fc.constantFrom(
          "tts:origin",
          "tts:extent",
          "tts:displayAlign",
          "tts:fontStyle",
          "tts:ruby",
          "ttp:frameRate",
          "ttp:tickRate",
        ),
        fc.oneof(noise, number.map(String), fc.constantFrom("10% 10%", "1c 1c", "after", "italic", "base", "text")),
      ),
      fc.tuple(
        fc.constantFrom("xmlns", "xmlns:tts"),
        fc.constantFrom("http://www.w3.org/ns/ttml", "http://www.w3.org/ns/ttml#styling", "urn:x"),
      ),
    ),
    { maxLength: 4 },
  )
  .map((all) => [...new Map(all)].map(([name, value]) => ` ${name}="${value.replaceAll(/["<&]/g, "")}"`).join(""));
const { ttml } = fc.letrec<{ ttml: string }>((tie) => ({
  ttml: fc.oneof(
    { maxDepth: 6 },
    fc.oneof(noise, fc.constantFrom("x", "<br/>", "<![CDATA[x]]>", "&amp;")),
    fc
      .tuple(
        fc.constantFrom("div", "p", "span", "region", "style", "set", "x"),
        ttmlAttributes,
        fc.array(tie("ttml"), { maxLength: 4 }),
      )
      .map(([name, list, inner]) => `<${name}${list}>${inner.join("")}</${name}>`),
  ),
}));

const documents: Record<FuzzDocument["extension"], fc.Arbitrary<string>> = {
  m3u8: hls,
  mpd: fc.oneof(
    element,
    template,
    element.map((inner) => `<MPD>${inner}</MPD>`),
  ),
  vtt: timed.map((text) => `WEBVTT\n\n${text}`),
  srt: timed.map((text) => text.replaceAll(".", ",")),
  ttml: fc
    .tuple(ttmlAttributes, ttml, ttml)
    .map(
      ([list, head, body]) =>
        `<tt${list}><head><styling>${head}</styling><layout>${head}</layout></head><body>${body}</body></tt>`,
    ),
  csv: lines(
    fc
      .array(
        fc.oneof(
          noise,
          noise.map((cell) => `"${cell}"`),
        ),
        { maxLength: 6 },
      )
      .map((cells) => cells.join(",")),
  ).map((text) => `title,original_filename,tags\n${text}`),
};

const anything = fc.oneof(repeated, fc.string({ unit: "binary", maxLength: 200 }));

export const documentOf = (extension: FuzzDocument["extension"]): fc.Arbitrary<FuzzDocument> =>
  fc
    .oneof({ weight: 8, arbitrary: documents[extension] }, { weight: 1, arbitrary: anything })
    .map((text) => ({ extension, text }));

export const anyDocument: fc.Arbitrary<FuzzDocument> = fc.oneof(
  ...(Object.keys(documents) as FuzzDocument["extension"][]).map(documentOf),
);
