import { createHash } from "node:crypto";
import { createWriteStream, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { pack } from "tar-stream";
import type { Arch } from "#scripts/build/base.ts";
import { own, paths } from "#scripts/build/paths.ts";
import { debianArch } from "#scripts/debian/packages.ts";
import { releaseTime } from "../time.ts";
import { baseEntries, CACHE, DATA, USER } from "./base.ts";
import { addEntry, type Blob, type Entry, type Layer, writeLayer } from "./layer.ts";

const OCI = "application/vnd.oci.image";
const SECOND = 1e9;
const PROGRAM = "usr/bin/vodbox";
const NAME = `vodbox:${own.version}`;

/**
 * Writes the container image of `executable` as a tar archive: an OCI image layout, with the manifest.json that
 * `docker load` of older versions needs. Two layers: Debian's libraries, and the executable.
 */
export async function writeImage(arch: Arch, executable: string, result: string, level = 9): Promise<void> {
  mkdirSync(paths.work, { recursive: true });
  const work = mkdtempSync(join(paths.work, "image-"));
  try {
    const blobs = join(work, "blobs");
    mkdirSync(blobs);
    const time = releaseTime();
    const program: Entry = { kind: "file", path: PROGRAM, from: executable, mode: 0o755 };
    const layers = [
      await writeLayer(await baseEntries(arch, work), time, blobs, level),
      await writeLayer([program], time, blobs, level),
    ];
    await writeArchive(describe(arch, layers, time, blobs), blobs, time, result);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Writes configuration and manifest as blobs; returns the files at the top of the archive. */
function describe(arch: Arch, layers: Layer[], time: Date, blobs: string): Record<string, unknown> {
  const config = writeBlob(blobs, configuration(arch, layers, time));
  const manifest = writeBlob(blobs, {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config: { mediaType: `${OCI}.config.v1+json`, ...config },
    layers: layers.map(({ digest, size }) => ({ mediaType: `${OCI}.layer.v1.tar+gzip`, digest, size })),
  });
  const platform = { os: "linux", architecture: debianArch(arch) };
  // The name as containerd and as podman look for it.
  const annotations = {
    "io.containerd.image.name": `docker.io/library/${NAME}`,
    "org.opencontainers.image.ref.name": own.version,
  };
  const pathOf = ({ digest }: Blob) => `blobs/${digest.replace(":", "/")}`;
  return {
    "oci-layout": { imageLayoutVersion: "1.0.0" },
    "index.json": {
      schemaVersion: 2,
      mediaType: `${OCI}.index.v1+json`,
      manifests: [{ mediaType: `${OCI}.manifest.v1+json`, ...manifest, platform, annotations }],
    },
    "manifest.json": [{ Config: pathOf(config), RepoTags: [NAME], Layers: layers.map(pathOf) }],
  };
}

function configuration(arch: Arch, layers: Layer[], time: Date) {
  const created = time.toISOString();
  return {
    created,
    os: "linux",
    architecture: debianArch(arch),
    config: {
      // As numbers: Kubernetes' runAsNonRoot cannot look up names.
      User: `${USER}:${USER}`,
      Env: [
        "PATH=/usr/bin",
        `HOME=/${DATA}`,
        "VODBOX_HOST=0.0.0.0",
        `VODBOX_DATA_DIR=/${DATA}`,
        `VODBOX_CACHE_DIR=/${CACHE}`,
        // With a read-only root there is no /tmp.
        `TMPDIR=/${CACHE}`,
      ],
      Entrypoint: [`/${PROGRAM}`],
      Cmd: ["serve"],
      WorkingDir: `/${DATA}`,
      ExposedPorts: { "8080/tcp": {} },
      Volumes: { [`/${DATA}`]: {}, [`/${CACHE}`]: {} },
      StopSignal: "SIGTERM",
      // Not part of the OCI specification; Docker reads it from OCI images too.
      Healthcheck: {
        Test: ["CMD", `/${PROGRAM}`, "health"],
        Interval: 30 * SECOND,
        Timeout: 10 * SECOND,
        StartPeriod: 60 * SECOND,
        Retries: 3,
      },
      Labels: {
        "org.opencontainers.image.title": "vodbox",
        "org.opencontainers.image.description": "A complete video platform in one executable",
        "org.opencontainers.image.version": own.version,
        "org.opencontainers.image.licenses": "MIT AND GPL-2.0-or-later",
      },
    },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: ["libraries of Debian", "vodbox"].map((comment) => ({ created, created_by: "npm run release", comment })),
  };
}

function writeBlob(blobs: string, content: unknown): Blob {
  const bytes = Buffer.from(JSON.stringify(content));
  const digest = createHash("sha256").update(bytes).digest("hex");
  writeFileSync(join(blobs, digest), bytes);
  return { digest: `sha256:${digest}`, size: bytes.length };
}

async function writeArchive(top: Record<string, unknown>, blobs: string, time: Date, result: string): Promise<void> {
  const tar = pack();
  const written = pipeline(tar, createWriteStream(result));
  const entries: Entry[] = [
    ...Object.entries(top).map(([path, value]): Entry => ({ kind: "text", path, text: JSON.stringify(value) })),
    ...["blobs", "blobs/sha256"].map((path): Entry => ({ kind: "folder", path })),
    ...readdirSync(blobs)
      .sort()
      .map((name): Entry => ({ kind: "file", path: `blobs/sha256/${name}`, from: join(blobs, name) })),
  ];
  for (const entry of entries) await addEntry(tar, entry, time);
  tar.finalize();
  await written;
}
