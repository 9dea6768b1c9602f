import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { encode } from "#media/encode.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { references } from "#src/lib/manifests/references.ts";
import type { TestApp } from "./app.ts";
import type { Files } from "./batches.ts";
import { checkup } from "./doctor.ts";
import { fixture } from "./fixture.ts";
import { callback, next, putArtifacts, uploaded } from "./flow.ts";
import { emptyFolder } from "./folder.ts";
import { binaries, fast, ffmpeg, picture, sound } from "./media/sources.ts";
import { typedClient } from "./typed-client.ts";

/** The length of the film: segments of 4 s, the last one of 2 s. */
export const SECONDS = 18;
export const FPS = 25;

/** What is encoded: 320x180 with audio. */
const SOURCE = [...picture("320x180", String(FPS), SECONDS), ...sound(SECONDS), ...fast, "-c:a", "aac"];

/** A real film, encoded to our specification, with a storyboard. `source` are arguments of ffmpeg. */
export async function film(source: readonly string[] = SOURCE): Promise<Files> {
  const path = await fixture(["film", source], async (path) => writeFileSync(path, serialize(await newFilm(source))));
  return deserialize(readFileSync(path));
}

async function newFilm(source: readonly string[]): Promise<Files> {
  const folder = emptyFolder();
  const input = join(folder, "source.mp4");
  await ffmpeg(...source, input);
  const outDir = join(folder, "out");
  const made = await encode({
    input,
    outDir,
    spec: encodingSpec,
    binaries,
    scratchDir: folder,
    probe: await probe(input, binaries),
  });
  const sheet = encodingSpec.storyboard.image.replace("$Number$", "1");
  const names = new Set([...made.files, made.manifest, made.dash, made.thumbnail, made.storyboard ?? "", sheet]);
  return Object.fromEntries([...names].map((name) => [name, new Uint8Array(readFileSync(join(outDir, name)))]));
}

type Ready = { id: number; external_id: string; prefix: string; storage_bytes: number };

/** Completes the next job as a worker that has encoded the film. */
async function completed(app: TestApp, key: string, files: Files, seconds = SECONDS): Promise<Ready> {
  const { body: contract } = await next(app);
  const { prefix, manifest_path, dash_manifest_path, thumbnail_path, storyboard_path } = contract.outputs;
  const fixed: Record<string, string> = {
    "master.m3u8": manifest_path,
    "manifest.mpd": dash_manifest_path,
    "thumbnail.jpg": thumbnail_path,
    "storyboard.vtt": storyboard_path,
  };
  const placed = Object.entries(files).map(([name, bytes]) => [fixed[name] ?? prefix + name, bytes] as const);
  const paths = await putArtifacts(app, contract, Object.fromEntries(placed));
  const done = await callback(app, contract, "complete", {
    ...paths,
    media: { duration_seconds: seconds, width: 320, height: 180, frame_rate: FPS, renditions: [] },
  });
  if (done.status !== 200) throw new Error(done.text);
  const { body } = await typedClient(app.call)(key).getAsset(contract.job.asset_id);
  return { ...body, prefix };
}

/** An asset whose media are the film, as a worker publishes it. */
export async function filmAsset(
  app: TestApp,
  key: string,
  files: Files,
  fields: Record<string, unknown> = {},
  seconds = SECONDS,
): Promise<Ready> {
  await uploaded(app, key, fields);
  return completed(app, key, files, seconds);
}

/** Encodes an asset again, with the same film: its media are under another prefix afterwards. */
export async function encodedAgain(
  app: TestApp,
  key: string,
  id: number,
  files: Files,
  seconds = SECONDS,
): Promise<Ready> {
  // The API has no such request yet; a missing manifest makes the doctor queue the job again.
  const { body } = await typedClient(app.call)(key).getAsset(id);
  await app.opened.app.objects?.delete(body.manifest_path);
  await checkup(app, { fix: true });
  return completed(app, key, files, seconds);
}

export const createClip = (app: Pick<TestApp, "call">, key: string, id: number, body: Record<string, unknown>) =>
  typedClient(app.call)(key).unchecked.createClip(id, body);

/** Downloads everything below a manifest, as a player does; resolves with the path of the local copy. */
export async function downloaded(app: Pick<TestApp, "opened">, hlsUrl: string): Promise<string> {
  const folder = emptyFolder();
  const names = new Map<string, string>();
  const todo = [hlsUrl];
  for (const url of todo) {
    if (names.has(url)) continue;
    const response = await app.opened.server.fetch(new Request(url));
    if (response.status !== 200) throw new Error(`${url}: ${response.status}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const name = join(folder, new URL(url).pathname.replace(/^\/media\/[^/]+\//, ""));
    names.set(url, name);
    mkdirSync(dirname(name), { recursive: true });
    writeFileSync(name, bytes);
    if (name.endsWith(".m3u8"))
      for (const uri of references(Buffer.from(bytes).toString())) todo.push(new URL(uri, url).href);
  }
  return names.get(hlsUrl) as string;
}

/** Hashes of all decoded video frames of a file or playlist. */
export async function frameHashes(path: string): Promise<string[]> {
  const lines = (await ffmpeg("-i", path, "-map", "0:v:0", "-fps_mode", "passthrough", "-f", "framemd5", "-"))
    .toString()
    .split("\n");
  return lines.filter((line) => /^\d/.test(line)).map((line) => line.split(",").at(-1)?.trim() as string);
}

/** A ready clip. */
export async function clipOf(app: TestApp, key: string, id: number, start_seconds: number, end_seconds: number) {
  const { status, text, body } = await createClip(app, key, id, { start_seconds, end_seconds });
  if (status !== 201) throw new Error(text);
  return body;
}
