import { createWriteStream, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { pack } from "tar-stream";
import { own, paths } from "../build/paths.ts";

const NAME = "vodbox";
export const chartName = `${NAME}-helm-${own.version}.tgz`;

/** Writes the Helm chart as `helm package` does: files below a folder of its name. The same sources give the same bytes. */
export async function writeChart(folder: string): Promise<string> {
  const source = join(paths.root, "deploy/helm", NAME);
  const archive = pack();
  const path = join(folder, chartName);
  const written = pipeline(archive, createGzip({ level: 9 }), createWriteStream(path));
  for (const name of globSync("**/*.*", { cwd: source }).sort())
    archive.entry({ name: `${NAME}/${name}`, mode: 0o644, mtime: new Date(0) }, readFileSync(join(source, name)));
  archive.finalize();
  await written;
  return path;
}
