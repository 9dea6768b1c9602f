import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { INIT_NAME } from "#media/arguments.ts";
import { fileNames, finish } from "#media/finish.ts";
import { joinParts } from "#media/join/join-parts.ts";
import { type Part, readPart } from "#media/join/read-part.ts";
import type { Written } from "#media/package.ts";
import { type Probe, probe } from "#media/probe.ts";
import { makeFolder, writeResult } from "#media/results.ts";
import { readFromFolder, type SegmentReader, writeSampleVideo } from "#media/sample-video.ts";
import type { Join } from "#protocol/join.ts";
import type { Completion, WorkerContract } from "#protocol/worker-client.ts";
import { addCaptions, type Captions, createCaptions } from "./captions.ts";
import type { JobContext } from "./context.ts";
import { PartReader } from "./part-reader.ts";
import { Publisher } from "./publisher.ts";
import { requestedSpec } from "./requested-spec.ts";
import { requestedNames, toCompletion, type Workspace } from "./transcode-job.ts";
import { removeFolder } from "./transfer.ts";

type JoinContract = WorkerContract & { join: Join };
type ContractPart = Join["parts"][number];

/** The rest of 100 is for images, manifests and publishing. */
const JOINED = 90;
const PUBLISHING = 95;

/** Joins the media of several assets. Throws MediaError and the errors of transfers. */
export async function joinMedia(job: JoinContract, context: JobContext, workspace: Workspace): Promise<Completion> {
  const { client, binaries, scratch, memoryBytes } = context;
  const { heartbeat, outDir, work } = workspace;
  const { signal } = heartbeat;
  const { parts } = job.join;
  const isLocal = Boolean(job.artifacts.local_path);
  // A job that was released keeps its attempt number, and so its directory.
  await removeFolder(outDir);
  await mkdir(outDir, { recursive: true });
  const publisher = new Publisher({ client, job, dir: outDir, signal, onMove: () => heartbeat.move() });
  let written: string[] = [];
  const write = async (rendition: string, file: string, data: Buffer) => {
    signal.throwIfAborted();
    await makeFolder(join(outDir, rendition));
    await writeResult(join(outDir, rendition, file), data);
    written.push(`${rendition}/${file}`);
  };
  /** Scratch space is needed for one part only. */
  const publish = async () => {
    const files = written;
    written = [];
    await publisher.also(files);
    const isSegment = (file: string) => !file.endsWith(`/${INIT_NAME}`);
    if (!isLocal) for (const file of files) if (isSegment(file)) await rm(join(outDir, file));
  };
  try {
    const { videos, audios, plan } = await joinParts({
      count: parts.length,
      part: (index) => openPart(job, context, workspace, parts[index] as ContractPart),
      write,
      signal,
      async onPart(index) {
        await publish();
        heartbeat.report("encoding", (JOINED * (index + 1)) / parts.length);
      },
    });
    await publish();
    const local = readFromFolder(outDir);
    const read: SegmentReader = (rendition, file) =>
      isLocal || file === INIT_NAME
        ? local(rendition, file)
        : client.read(job, `${job.outputs.prefix}${rendition}/${file}`, signal);
    const spec = requestedSpec(job);
    const result = await finish({
      plan,
      videos,
      audios,
      outDir,
      read,
      spec,
      binaries,
      names: fileNames(spec, requestedNames(job)),
      run: {
        cwd: work,
        reads: [],
        writes: [outDir],
        memoryBytes,
        signal,
        pidDir: scratch.pidDir,
        onLog: (line) => heartbeat.logLine(line),
        onMove: () => heartbeat.move(),
      },
    });
    const captions = await captionJoined(job, context, workspace, { audios, read });
    await addCaptions(captions, outDir);
    heartbeat.report("publishing", PUBLISHING);
    await publisher.finish([...captions.files, ...result.files.filter((file) => !file.endsWith(".m4s"))]);
    return { ...toCompletion(result, job.outputs.prefix, { spherical: null, warnings: [] }), ...captions.reported };
  } finally {
    await publisher.stop();
  }
}

/** Captions of what is joined; they are requested of recordings, which have at most one rendition of audio. */
async function captionJoined(
  job: JoinContract,
  context: JobContext,
  { heartbeat, work }: Workspace,
  { audios, read }: { audios: readonly Written[]; read: SegmentReader },
): Promise<Captions> {
  const { signal } = heartbeat;
  const input = join(work, "audio.mp4");
  const [audio] = audios;
  const isRequested = Object.keys(job.outputs.subtitle_paths ?? {}).length > 0;
  let media: Pick<Probe, "audio"> = { audio: [] };
  if (isRequested && audio) {
    await writeSampleVideo({ ...audio, read }, input);
    const run = { cwd: work, signal, pidDir: context.scratch.pidDir, memoryBytes: context.memoryBytes };
    media = await probe(input, context.binaries, run);
  }
  if (isRequested) heartbeat.report("captioning", JOINED);
  const onProgress = (fraction: number) => heartbeat.report("captioning", JOINED + fraction * (PUBLISHING - JOINED));
  const captions = await createCaptions(job, context, {
    input,
    probe: media,
    work,
    signal,
    onProgress,
    onMove: () => heartbeat.move(),
  });
  await rm(input, { force: true });
  return captions;
}

async function openPart(
  job: JoinContract,
  context: JobContext,
  workspace: Workspace,
  part: ContractPart,
): Promise<Part> {
  const { signal } = workspace.heartbeat;
  const reader = new PartReader(job, context, part, signal);
  const opened = await readPart(part.asset_id, part.manifest_path, (path) => reader.read(path));
  reader.announce(opened.renditions.map(({ segments }) => segments));
  return opened;
}
