import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { emptyFolder } from "../folder.ts";

const exec = promisify(execFile);

/** A certificate and its key, as PEM. */
export async function selfSigned(): Promise<{ key: Buffer; cert: Buffer }> {
  const folder = emptyFolder();
  const key = join(folder, "key.pem");
  const cert = join(folder, "cert.pem");
  const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost";
  await exec("openssl", [...request.split(" "), "-keyout", key, "-out", cert]);
  return { key: readFileSync(key), cert: readFileSync(cert) };
}
