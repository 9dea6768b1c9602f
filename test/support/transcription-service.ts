import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "./folder.ts";

export const KEY = "the-key-of-the-service";
export type Heard = {
  path: string;
  headers: IncomingMessage["headers"];
  fields: Record<string, string>;
  /** The WAV file, after checking that it is one. */
  seconds: number;
  samples: Int16Array;
};
/** Responds to one request in a custom way. */
export type Mood = (response: ServerResponse, heard: Heard) => void;

export const vttOf = (text: string, from = "00:00:00.500", to = "00:00:01.500") =>
  `WEBVTT\n\n${from} --> ${to}\n${text}\n`;

/**
 * `POST /v1/audio/transcriptions` as OpenAI documents it, and `/inference` of whisper.cpp: multipart, at most 25 MB,
 * WebVTT where requested. The moods apply to the first requests in order; others get one cue with their number.
 */
export async function transcriptionService() {
  const heard: Heard[] = [];
  const moods: Mood[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const one = await read(request, Buffer.concat(chunks));
      heard.push(one);
      const mood = moods.shift();
      if (mood) mood(response, one);
      else response.end(vttOf(`piece ${heard.length}`));
    } catch (error) {
      if (!response.headersSent) response.writeHead(400);
      response.end(JSON.stringify({ error: { message: (error as Error).message } }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard, moods };
}

const must = (condition: unknown, what: string) => {
  if (!condition) throw new Error(what);
};

async function read(request: IncomingMessage, body: Buffer): Promise<Heard> {
  const path = request.url ?? "";
  must(request.method === "POST", "method");
  must(path === "/v1/audio/transcriptions" || path === "/inference", "no such address");
  must(Number(request.headers["content-length"]) === body.length && body.length <= 25 * 2 ** 20, "length");
  if (path !== "/inference") must(request.headers.authorization === `Bearer ${KEY}`, "auth");
  const type = request.headers["content-type"] ?? "";
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
  const file = form.get("file") as File;
  must(file instanceof File && file.name.endsWith(".wav"), "file");
  const wav = Buffer.from(await file.arrayBuffer());
  must(wav.toString("latin1", 0, 4) === "RIFF" && wav.readUInt32LE(4) === wav.length - 8, "RIFF");
  must(wav.toString("latin1", 8, 16) === "WAVEfmt " && wav.readUInt16LE(20) === 1, "WAVE");
  must(wav.readUInt16LE(22) === 1 && wav.readUInt32LE(24) === 16_000 && wav.readUInt16LE(34) === 16, "format");
  must(wav.toString("latin1", 36, 40) === "data" && wav.readUInt32LE(40) === wav.length - 44, "data");
  const fields = Object.fromEntries([...form.entries()].filter(([, value]) => typeof value === "string"));
  must(/^([a-z]{2,3}|auto)$/.test((fields.language as string | undefined) ?? "en"), "ISO 639-1");
  const samples = new Int16Array(wav.buffer.slice(wav.byteOffset + 44, wav.byteOffset + wav.length));
  return {
    path,
    headers: request.headers,
    fields: fields as Record<string, string>,
    seconds: samples.length / 16_000,
    samples,
  };
}
