import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "./folder.ts";

export type Kind = "libretranslate" | "apertium" | "deepl" | "openai";
export type Asked = { path: string; headers: IncomingMessage["headers"]; texts: string[]; sent: any };
/** Handles one request in a custom way; `texts` are the regular translations. */
export type Mischief = (response: ServerResponse, texts: string[], asked: Asked) => void;

export const KEY = "the-key-of-the-service";
/** The language "Loud": letters outside of tags and entities in upper case. */
export const loud = (text: string) =>
  text.replace(/<[^>]*>|&\w+;|[^<&]+/g, (part) => (/^[<&]/.test(part) ? part : part.toUpperCase()));

/** A translation service on a loopback port. Like the real one it refuses requests that do not follow its API. */
export async function translationService(kind: Kind) {
  const asked: Asked[] = [];
  const mischief: Mischief[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const answer = (status: number, body: unknown, headers = {}) => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(body));
    };
    try {
      const body = Buffer.concat(chunks).toString();
      const path = request.url as string;
      const listed = LISTS[kind]?.[`${request.method} ${path}`];
      if (listed) return answer(200, listed);
      const { texts, sent, render } = PROTOCOLS[kind](request, body);
      const one = { path, headers: request.headers, texts, sent };
      asked.push(one);
      const act = mischief.shift();
      if (act) act(response, texts.map(loud), one);
      else answer(200, render(texts.map(loud)));
    } catch (error) {
      answer(400, { error: (error as Error).message });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  atEnd(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, mischief, close };
}

const LISTS: Partial<Record<Kind, Record<string, unknown>>> = {
  libretranslate: {
    "GET /languages": [
      { code: "en", name: "English", targets: ["de", "en", "zh-Hans"] },
      { code: "de", name: "German", targets: ["en"] },
    ],
  },
  apertium: {
    "GET /listPairs": {
      responseData: [
        { sourceLanguage: "eng", targetLanguage: "deu" },
        { sourceLanguage: "eng", targetLanguage: "zho" },
      ],
      responseDetails: null,
      responseStatus: 200,
    },
  },
  deepl: {
    "GET /v2/languages?type=target": ["DE", "EN-GB", "EN-US", "PT-BR", "PT-PT", "ZH", "ZH-HANS"].map((language) => ({
      language,
      name: language,
      supports_formality: false,
    })),
  },
};

type Read = { texts: string[]; sent: any; render(texts: string[]): unknown };
const must = (condition: unknown, what: string) => {
  if (!condition) throw new Error(what);
};
const isXml = (text: string) => {
  const open: string[] = [];
  for (const [, slash, name, empty] of text.matchAll(/<(\/?)(\w+)(?: id="\d+")?(\/?)>/g)) {
    if (slash) must(open.pop() === name, "not well-formed");
    else if (!empty) open.push(name as string);
  }
  return open.length === 0 && !/&(?!amp;|lt;|gt;)/.test(text);
};

const PROTOCOLS: Record<Kind, (request: IncomingMessage, body: string) => Read> = {
  libretranslate(request, body) {
    const sent = JSON.parse(body);
    must(request.method === "POST" && request.url === "/translate", "no such address");
    must(sent.api_key === KEY, "Invalid API key");
    must(["text", "html"].includes(sent.format), "format");
    must(sent.source === "en" && ["de", "zh-Hans"].includes(sent.target), "language not supported");
    return { texts: [sent.q].flat(), sent, render: (translatedText) => ({ translatedText }) };
  },
  apertium(request, body) {
    const sent = Object.fromEntries(new URLSearchParams(body));
    must(request.method === "POST" && request.url === "/translate", "no such address");
    must(request.headers["content-type"] === "application/x-www-form-urlencoded", "type");
    must(/^eng\|(deu|zho)$/.test(sent.langpair as string), "That pair is not installed");
    must(sent.markUnknown === "no" && ["txt", "html"].includes(sent.format as string), "arguments");
    const render = ([translatedText]: string[]) => ({ responseData: { translatedText }, responseStatus: 200 });
    return { texts: [sent.q as string], sent, render };
  },
  deepl(request, body) {
    const sent = JSON.parse(body);
    must(request.method === "POST" && request.url === "/v2/translate", "no such address");
    must(request.headers.authorization === `DeepL-Auth-Key ${KEY}`, "auth");
    must(sent.text.length <= 50 && Buffer.byteLength(body) <= 128 * 1024, "too large");
    must(sent.source_lang === "EN" && /^(DE|PT-BR|ZH-HANS)$/.test(sent.target_lang), "language");
    must(sent.tag_handling === undefined || sent.text.every(isXml), "Tag handling parsing failed");
    return { texts: sent.text, sent, render: (texts) => ({ translations: texts.map((text) => ({ text })) }) };
  },
  openai(request, body) {
    const sent = JSON.parse(body);
    must(request.method === "POST" && request.url === "/v1/chat/completions", "no such address");
    must(request.headers.authorization === `Bearer ${KEY}`, "auth");
    must(sent.model === "some-model", "model");
    must(/from English \(en\) to (German \(de\)|Chinese \(zh\))/.test(sent.messages[0].content), "languages");
    const render = (texts: string[]) => ({
      choices: [{ message: { role: "assistant", content: `\`\`\`json\n${JSON.stringify(texts)}\n\`\`\`` } }],
    });
    return { texts: JSON.parse(sent.messages[1].content), sent, render };
  },
};
