import { randomUUID } from "node:crypto";
import { chown, copyFile, open, readdir, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { withoutTrailing } from "#lib/base";
import { makeFolder } from "#lib/executable";
import { CATALOG, type CatalogModel, fileOf, shortName } from "./catalog.ts";
import { downloadModel, ModelUnavailable, publish, requireSpace, sha256Of, sizeOf } from "./download.ts";
import { readHeader } from "./header.ts";
import { type InstalledModel, installedModels, isModelName, modelFile, modelsDir } from "./store.ts";

export type Installation = {
  /** With or without `ggml-` and `.bin`. */
  name: string;
  dataDir: string;
  modelsUrl: string;
  /** A local file instead of a download. */
  file?: string | undefined;
  minFreeBytes: number;
  signal: AbortSignal;
  onProgress?: (fraction: number) => void;
  /** The models whose checksums are known; default: CATALOG. */
  catalog?: readonly CatalogModel[];
  pauseMs?: number;
};

/**
 * Installs a model in the data directory, in the place of an earlier one of its name; a job that reads that one is not
 * disturbed. Returns the installed one, also when it was there. Throws ModelUnavailable.
 */
export async function installModel(installation: Installation): Promise<InstalledModel> {
  const { dataDir, file, catalog = CATALOG, signal } = installation;
  const name = shortName(installation.name);
  const known = catalog.find((model) => model.name === name);
  if (!isModelName(name))
    throw new ModelUnavailable("A model's name has at most 64 letters, digits, dots, hyphens and underscores.");
  if (!known && file === undefined)
    throw new ModelUnavailable(
      `There is no model ${name}: \`vodbox captions models\` lists them. Install a file of your own with --file.`,
    );
  const dir = modelsDir(dataDir);
  makeFolder(dir);
  const path = file === undefined ? await downloaded() : await copied(file);
  await ownedByServer(dataDir, dir);
  await ownedByServer(dataDir, path);
  const installed = installedModels(dataDir).filter((model) => model.name === name);
  for (const model of installed) if (model.path !== path) await rm(model.path, { force: true });
  const result = installed.find((model) => model.path === path);
  if (!result) throw new ModelUnavailable(`The model ${name} was removed while it was installed.`);
  return result;

  async function downloaded(): Promise<string> {
    const model = known as CatalogModel;
    const path = join(dir, modelFile(model));
    if ((await sizeOf(path)) === model.bytes) return path;
    const { bytes, sha256 } = model;
    const url = `${withoutTrailing(installation.modelsUrl, "/")}/${fileOf(name)}`;
    await downloadModel({ ...installation, url, path, bytes, sha256 });
    return path;
  }

  async function copied(from: string): Promise<string> {
    const fault = await readHeader(from).catch((error: Error) => `cannot be read: ${error.message}`);
    if (typeof fault === "string") throw new ModelUnavailable(`${from} ${fault}.`);
    await sweep(dir);
    const part = join(dir, `${name}.${randomUUID()}.part`);
    try {
      await requireSpace(part, await sizeOf(from), installation.minFreeBytes);
      await copyFile(from, part).catch((error: Error) => {
        throw new ModelUnavailable(`${from} could not be copied to ${dir}: ${error.message}`);
      });
      await using copy = await open(part, "r+");
      await copy.chmod(0o600);
      // The checksum of the copy: the file may change meanwhile.
      const sha256 = await sha256Of(part, signal);
      if (known && sha256 !== known.sha256)
        throw new ModelUnavailable(
          `${from} is not the model ${name}: its checksum is ${sha256} instead of ${known.sha256}. Choose another name for it.`,
        );
      const path = join(dir, modelFile({ name, sha256 }));
      await publish(part, path);
      return path;
    } finally {
      await rm(part, { force: true });
    }
  }
}

const COPY = /\.[0-9a-f]{8}-[0-9a-f-]{27}\.part$/;
const HOUR_MS = 3_600_000;

/** Removes copies that killed commands left. */
async function sweep(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    if (!COPY.test(name)) continue;
    const info = await stat(join(dir, name)).catch(() => null);
    if (info && Date.now() - info.mtimeMs > HOUR_MS) await rm(join(dir, name), { force: true });
  }
}

/** Root may install for a service that runs as another user, the owner of the data directory. */
async function ownedByServer(dataDir: string, path: string): Promise<void> {
  if (process.geteuid?.() !== 0 || dirname(path) === path) return;
  const { uid, gid } = await stat(dataDir);
  await chown(path, uid, gid);
}
