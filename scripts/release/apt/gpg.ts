import { writeFileSync } from "node:fs";
import { run } from "#scripts/build/run.ts";

/** A key of the keyring that gpg uses (GNUPGHOME): its fingerprint, or another name of it that is unique. */
export type GpgKey = string;

const gpg = (...args: string[]) => run("gpg", ["--batch", "--yes", "--quiet", ...args]);

/** Throws unless gpg has the secret key. */
export async function checkGpgKey(key: GpgKey): Promise<void> {
  await gpg("--list-secret-keys", "--", key).catch((error: unknown) => {
    throw new Error(`gpg has no secret key ${key}: ${error instanceof Error ? error.message : error}`);
  });
}

/** Writes the public key to `file`, in the armored form that `Signed-By` of apt takes. */
export async function exportGpgKey(key: GpgKey, file: string): Promise<void> {
  writeFileSync(file, `${await gpg("--armor", "--export", "--", key)}\n`);
}

/** Signs the text `release` twice, as apt reads it: in the text itself, to `inline`, and apart from it, to `detached`. */
export async function signRelease(key: GpgKey, release: string, inline: string, detached: string): Promise<void> {
  const signing = ["--local-user", key, "--digest-algo", "SHA512", "--armor"];
  await gpg(...signing, "--output", inline, "--clear-sign", release);
  await gpg(...signing, "--output", detached, "--detach-sign", release);
}
