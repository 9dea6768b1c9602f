import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readInit } from "#lib/isobmff";
import { type ClipPlaylist, clipPlaylists, type NumberedFiles, numberedFiles } from "#lib/manifests";
import {
  cutRendition,
  type MediaRange,
  type Rendition,
  type RenditionCut,
  startOf,
} from "#media/clip/cut-rendition.ts";
import type { Encoding } from "#media/clip/encode-frames.ts";
import { exactMpd } from "#media/clip/exact-mpd.ts";
import {
  entriesOf,
  exactFrames,
  exactPlaylist,
  ownPath,
  readWhole,
  type WholePlaylist,
} from "#media/clip/exact-playlists.ts";
import { ClipImpossible } from "#media/clip/impossible.ts";
import { writeResult } from "#media/results.ts";
import type { Clip } from "#protocol/clip.ts";
import type { Completion, WorkerContract } from "#protocol/worker-client.ts";
import type { JobContext } from "./context.ts";
import { Publisher } from "./publisher.ts";
import { requestedSpec } from "./requested-spec.ts";
import type { Workspace } from "./transcode-job.ts";
import { removeFolder } from "./transfer.ts";

type ClipContract = WorkerContract & { clip: Clip };
type CutPlaylist = { whole: WholePlaylist; cut: RenditionCut };
type Files = Map<string, string | Buffer>;

/** The rest of 100 is for publishing. */
const ENCODED = 95;

/** Cuts an exact clip. Throws MediaError and the errors of transfers. */
export async function cutClip(job: ClipContract, context: JobContext, workspace: Workspace): Promise<Completion> {
  const { clip, outputs } = job;
  const { heartbeat, outDir, work } = workspace;
  // A job that was released keeps its attempt number, and so its directory.
  await removeFolder(outDir);
  await mkdir(outDir, { recursive: true });
  const { scratch, memoryBytes, binaries, client } = context;
  const encoding: Encoding = {
    spec: requestedSpec(job),
    binaries,
    run: {
      cwd: work,
      memoryBytes,
      signal: heartbeat.signal,
      pidDir: scratch.pidDir,
      onLog: (line) => heartbeat.logLine(line),
      onMove: () => heartbeat.move(),
    },
  };
  const publisher = new Publisher({
    client,
    job,
    dir: outDir,
    signal: heartbeat.signal,
    onMove: () => heartbeat.move(),
  });
  try {
    const cutter = new ClipCutter(job, context, workspace, encoding);
    const { files, skipped, duration, segments, own } = await cutter.run();
    for (const [path, content] of files) {
      await mkdir(dirname(join(outDir, path)), { recursive: true });
      await writeResult(join(outDir, path), content);
    }
    heartbeat.report("publishing", ENCODED);
    await publisher.finish([...files.keys()]);
    const named = (path: string | null) => path && outputs.prefix + path;
    return {
      manifest_path: outputs.prefix + clip.manifest_path,
      dash_manifest_path: named(clip.dash_manifest_path),
      storyboard_path: named(clip.storyboard_path),
      thumbnail_path: null,
      mp4_path: null,
      subtitle_paths: {},
      caption_errors: {},
      media: {
        duration_seconds: duration,
        width: null,
        height: null,
        frame_rate: null,
        bytes: 0,
        renditions: [],
        audio_renditions: [],
      },
      clip: { skipped_seconds: skipped, segments, own },
    };
  } finally {
    await publisher.stop();
  }
}

class ClipCutter {
  readonly #job: ClipContract;
  readonly #context: JobContext;
  readonly #workspace: Workspace;
  readonly #encoding: Encoding;
  readonly #objects: Map<string, Clip["objects"][number]>;
  readonly #files: Files = new Map();

  constructor(job: ClipContract, context: JobContext, workspace: Workspace, encoding: Encoding) {
    this.#job = job;
    this.#context = context;
    this.#workspace = workspace;
    this.#encoding = encoding;
    this.#objects = new Map(job.clip.objects.map((one) => [one.path, one]));
  }

  async run() {
    const { clip } = this.#job;
    const master = await this.#text(clip.manifest_path);
    this.#files.set(clip.manifest_path, master);
    const playlists = clipPlaylists(master, clip.manifest_path);
    const wholes = new Map<ClipPlaylist, WholePlaylist>();
    for (const one of playlists) wholes.set(one, readWhole(await this.#text(one.path), one.path));
    const media = playlists.filter(({ kind }) => kind !== "frames");
    const [first] = media;
    if (!first) throw new ClipImpossible("it has no rendition");
    const start = await startOf(await this.#rendition(wholes.get(first) as WholePlaylist));
    let range: MediaRange = {
      start: start + clip.start_seconds,
      end: start + clip.start_seconds + clip.duration_seconds,
    };
    const cuts = new Map<string, CutPlaylist>();
    for (const [index, playlist] of media.entries()) {
      this.#workspace.heartbeat.report("encoding", (ENCODED * index) / media.length);
      const whole = wholes.get(playlist) as WholePlaylist;
      const cut = await cutRendition(await this.#rendition(whole), range, this.#encoding);
      // The frames of the first rendition decide which packets of audio belong to the clip.
      if (index === 0) range = cut.range;
      cuts.set(whole.path, { whole, cut });
      this.#addRendition(whole, cut);
    }
    for (const playlist of playlists) {
      if (playlist.kind !== "frames") continue;
      const frames = wholes.get(playlist) as WholePlaylist;
      const of = this.#owner(cuts, frames.segments[0]?.path);
      if (!of) throw new ClipImpossible("a playlist of frames refers to other segments");
      this.#files.set(playlist.path, exactFrames(frames, of.whole, of.cut));
    }
    const skipped = Math.max(0, range.start - start);
    await this.#addDocuments(cuts, { start: skipped, end: range.end - start });
    return { files: this.#files, skipped, duration: range.end - range.start, ...shares([...cuts.values()]) };
  }

  async #addDocuments(cuts: Map<string, CutPlaylist>, range: MediaRange): Promise<void> {
    const { dash_manifest_path: dash, storyboard_path: storyboard } = this.#job.clip;
    if (dash !== null) {
      const text = exactMpd(await this.#text(dash), dash, range, (path) => {
        const of = this.#owner(cuts, path);
        return of && { cut: of.cut, count: of.whole.segments.length };
      });
      this.#files.set(dash, text);
    }
    if (storyboard !== null) this.#files.set(storyboard, await this.#text(storyboard));
  }

  #addRendition(whole: WholePlaylist, cut: RenditionCut): void {
    this.#files.set(whole.path, exactPlaylist(whole, cut));
    for (const one of cut.own) this.#files.set(ownPath(whole, cut, one), one.data);
    if (cut.init) this.#files.set(whole.initPath, cut.init);
  }

  #owner(cuts: Map<string, CutPlaylist>, segmentPath: string | undefined): CutPlaylist | undefined {
    return [...cuts.values()].find(({ whole }) => whole.segments.some(({ path }) => path === segmentPath));
  }

  async #rendition({ initPath, segments }: WholePlaylist): Promise<Rendition> {
    const init = await this.#read(initPath);
    // One that is not shared is needed by the clip itself.
    if (!this.#objects.get(initPath)?.is_shared) this.#files.set(initPath, init);
    return {
      kind: readInit(init).width > 0 ? "video" : "audio",
      init,
      count: segments.length,
      read: (index) => this.#read(segments[index]?.path ?? ""),
      // Those in the middle are not listed.
      isShared: (index) => this.#objects.get(segments[index]?.path ?? "")?.is_shared ?? true,
    };
  }

  async #text(path: string): Promise<string> {
    return (await this.#read(path)).toString("utf8");
  }

  async #read(path: string): Promise<Buffer> {
    const object = this.#objects.get(path);
    if (!object) throw new ClipImpossible("its segments are too short");
    if (object.local_path) return readFile(object.local_path);
    return this.#context.client.fetch(object, this.#workspace.heartbeat.signal);
  }
}

/** Which segments the clip shares, and which objects are its own. */
function shares(cuts: readonly CutPlaylist[]): { segments: NumberedFiles[]; own: string[] } {
  const own = cuts.flatMap(({ whole, cut }) => [
    ...cut.own.map((one) => ownPath(whole, cut, one)),
    ...(cut.init ? [whole.initPath] : []),
  ]);
  const segments = new Map<string, NumberedFiles>();
  for (const { whole, cut } of cuts) {
    const paths = entriesOf(whole, cut).flatMap(({ path }) => (own.includes(path) ? [] : [path]));
    const run = paths.length > 0 ? numberedFiles(paths) : null;
    if (paths.length > 0 && !run) throw new ClipImpossible("its segments are not numbered consecutively");
    if (run) segments.set(JSON.stringify(run), run);
  }
  return { segments: [...segments.values()], own: [...new Set(own)] };
}
