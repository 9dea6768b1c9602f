import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";

/** A new signing key without a password in the keyring of the directory `home` (GNUPGHOME); its fingerprint. */
export function newGpgKey(home: string): string {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const options = ["--homedir", home, "--batch", "--quiet", "--yes", "--status-fd", "1", "--passphrase", ""];
  const create = ["--quick-generate-key", "The tests <tests@example.com>", "ed25519", "sign", "never"];
  const status = execFileSync("gpg", [...options, ...create], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [, fingerprint] = /KEY_CREATED P (\w+)/.exec(status) ?? [];
  if (!fingerprint) throw new Error(`gpg created no key:\n${status}`);
  return fingerprint;
}

/** Ends the agent that gpg has started for the keyring. */
export const stopGpgAgent = (home: string) => execFileSync("gpgconf", ["--homedir", home, "--kill", "gpg-agent"]);
