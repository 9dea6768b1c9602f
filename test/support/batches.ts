import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encode } from "#media/encode.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { TestApp } from "./app.ts";
import type { Answer, CallOptions } from "./client.ts";
import { emptyFolder } from "./folder.ts";
import { binaries, fast, ffmpeg, picture, sound } from "./media/sources.ts";
import { typedClient } from "./typed-client.ts";

export type Files = Record<string, string | Uint8Array>;
type Door = Pick<TestApp, "call">;

const contentTypes: Record<string, string> = { m3u8: "application/vnd.apple.mpegurl", mpd: "application/dash+xml" };
export const typeOf = (name: string) => contentTypes[name.split(".").at(-1) as string] ?? "application/octet-stream";

/** A leased batch, and the headers of a client without a key. */
export async function leased(app: Door, key: string, fields: Record<string, unknown> = {}) {
  const made = await typedClient(app.call)(key).createBatch(fields);
  if (made.status !== 201) throw new Error(made.text);
  const path = `/api/v1/ingest_batches/${made.body.id}`;
  const headers = { "x-svc-batch-token": made.body.lease_token };
  const ask = (method: string, rest: string, options: CallOptions = {}): Promise<Answer> =>
    app.call(method, path + rest, { ...options, headers: { ...headers, ...options.headers } });
  const want = (object_key: string, bytes: string | Uint8Array, more: Record<string, unknown> = {}) =>
    ask("POST", "/uploads", {
      body: { object_key, bytes_expected: Buffer.byteLength(bytes), content_type: typeOf(object_key), ...more },
    });
  const put = async (object_key: string, bytes: string | Uint8Array) => {
    const { body: batchUpload } = await want(object_key, bytes);
    const sent = await app.call(batchUpload.upload_method, batchUpload.upload_url, {
      raw: bytes as string,
      headers: batchUpload.upload_headers,
    });
    if (sent.status !== 200) throw new Error(sent.text);
    const body = { bytes_received: Buffer.byteLength(bytes) };
    const done = await ask("POST", `/uploads/${batchUpload.id}/complete`, { body });
    if (done.status !== 200) throw new Error(done.text);
    return done.body;
  };
  const putAll = async (files: Files) => {
    for (const [name, bytes] of Object.entries(files)) await put(name, bytes);
  };
  const preview = (manifest: unknown) => ask("POST", "/manifest/preview", { body: manifest });
  const commit = (manifest: unknown) => ask("POST", "/manifest/commit", { body: manifest });
  return { batch: made.body, path, headers, ask, want, put, putAll, preview, commit };
}

/** A film of text only: checked like a real one, and created quickly. */
export const JPEG = Buffer.from("ffd8ffe000104a46494600010100", "hex");
export const tiny = (folder = ""): Files => ({
  [`${folder}master.m3u8`]:
    '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360,CODECS="avc1.64001e",FRAME-RATE=30.000\nlow/playlist.m3u8\n',
  [`${folder}low/playlist.m3u8`]:
    '#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:4,\n1.m4s\n#EXTINF:2.5,\n2.m4s\n#EXT-X-ENDLIST\n',
  [`${folder}low/init.mp4`]: "initialization",
  [`${folder}low/1.m4s`]: "first segment",
  [`${folder}low/2.m4s`]: "second",
});
export const tinyAsset = (folder = "", more: Record<string, unknown> = {}) => ({
  title: "Tiny",
  original_filename: "tiny.mov",
  relative_path: `${folder}tiny.mov`,
  duration_seconds: 6.5,
  hls: { manifest_path: `${folder}master.m3u8`, renditions: [] },
  ...more,
});

/** What a desktop client uploads: a real film, encoded to the published specification, with its source. */
export async function realFilm(): Promise<{ files: Files; source: Uint8Array }> {
  const folder = emptyFolder();
  const input = join(folder, "source.mp4");
  await ffmpeg(...picture("320x180", "25", 5), ...sound(5), ...fast, "-c:a", "aac", "-shortest", input);
  const outDir = join(folder, "out");
  const made = await encode({
    input,
    outDir,
    spec: encodingSpec,
    binaries,
    scratchDir: folder,
    probe: await probe(input, binaries),
  });
  const names = new Set([...made.files, made.manifest, made.dash, made.thumbnail]);
  const files = Object.fromEntries([...names].map((name) => [name, new Uint8Array(readFileSync(join(outDir, name)))]));
  return { files, source: new Uint8Array(readFileSync(input)) };
}
