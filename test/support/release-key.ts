import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type ReleaseKey = { secret: string; public: string };

/** A new key of minisign in `folder`, without a password; `public` is its text. */
export function newReleaseKey(folder: string): ReleaseKey {
  mkdirSync(folder, { recursive: true });
  const secret = join(folder, "minisign.key");
  const file = join(folder, "minisign.pub");
  execFileSync("minisign", ["-G", "-W", "-f", "-s", secret, "-p", file]);
  return { secret, public: readFileSync(file, "utf8").split("\n")[1] as string };
}
