import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { own } from "../build/paths.ts";

/** The ending of a signature's file, which minisign gives it. */
export const SIGNATURE = ".minisig";

/** The password of an encrypted secret key. */
const PASSWORD = "VODBOX_RELEASE_KEY_PASSWORD";

/** minisign reads the password from standard input, and ends without reading it when the key has none. */
function minisign(args: string[]): void {
  const password = process.env[PASSWORD];
  try {
    execFileSync(
      "minisign",
      args,
      password ? { input: `${password}\n`, stdio: "pipe" } : { stdio: ["ignore", "pipe", "pipe"] },
    );
  } catch (error) {
    const { code, stderr } = error as { code?: string; stderr?: Buffer };
    if (code === "ENOENT") throw new Error("Signing needs minisign: install Debian's package minisign.");
    throw new Error(`minisign failed; ${PASSWORD} has the password of an encrypted key.\n${stderr ?? ""}`);
  }
}

/** The public key of the secret key in the file `secretKey`: 56 characters of base64, as `minisign -P` takes it. */
export function publicKeyOf(secretKey: string): string {
  const folder = mkdtempSync(join(tmpdir(), "vodbox-sign-"));
  try {
    const file = join(folder, "key.pub");
    minisign(["-R", "-s", secretKey, "-p", file]);
    return readFileSync(file, "utf8").split("\n")[1] ?? "";
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Writes a signature of minisign next to each file in `folder`. The trusted comment is the version alone, so the same files give
 * the same signatures.
 */
export function signFiles(folder: string, secretKey: string): void {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map(({ name }) => join(folder, name)).sort();
  minisign(["-S", "-s", secretKey, "-t", `vodbox ${own.version}`, "-m", ...paths]);
}
