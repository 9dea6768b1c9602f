import { createHash } from "node:crypto";
import { createReadStream, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

/** The SHA-256 of a file in hexadecimal. */
export async function sha256(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** Writes SHA256SUMS, in the form of `sha256sum`, for all files in `folder`; directories have checksums of their own. */
export async function writeChecksums(folder: string): Promise<void> {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map(({ name }) => name).filter((name) => name !== "SHA256SUMS");
  const lines: string[] = [];
  for (const name of names.sort()) lines.push(`${await sha256(join(folder, name))}  ${name}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), lines.join(""));
}
