import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { inject } from "vitest";
import { freePort } from "#scripts/free-port.ts";
import { s3Client } from "#storage/objects/s3/client.ts";
import { newFolder, removeFolder } from "./folder.ts";

export type S3Place = { endpoint: string; accessKeyId: string; secretAccessKey: string; region: string };
export type S3Server = S3Place & {
  /** Creates it, unless it exists. */
  bucket(name: string): Promise<void>;
  /** Its CORS rules, as XML; null removes them. */
  cors(bucket: string, rules: string | null): Promise<void>;
};

/** Those of docs/operations.md. */
export const CORS_RULES = `<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod><AllowedMethod>HEAD</AllowedMethod><AllowedMethod>PUT</AllowedMethod><AllowedHeader>*</AllowedHeader><ExposeHeader>ETag</ExposeHeader><ExposeHeader>Content-Range</ExposeHeader><MaxAgeSeconds>3600</MaxAgeSeconds></CORSRule></CORSConfiguration>`;

const run = promisify(execFile);
const READY_MS = 90_000;

/** The server of this test run; the first request starts it. Buckets are shared: create one with `newBucket`. */
export async function s3Server(): Promise<S3Server> {
  const answer = await fetch(inject("s3"));
  if (!answer.ok) throw new Error(await answer.text());
  const place = (await answer.json()) as S3Place;
  const ask = (bucket: string, query: Record<string, string>, body?: string) => {
    const client = s3Client({ ...place, bucket, pathStyle: true, prefix: "" });
    const headers: Record<string, string> = {};
    if (body) headers["content-md5"] = createHash("md5").update(body).digest("base64");
    const content = body === undefined ? {} : { body: Buffer.from(body) };
    return client.ask({ method: query.cors === "" && !body ? "DELETE" : "PUT", query, headers, ...content });
  };
  return {
    ...place,
    bucket: async (name) => void (await ask(name, {})),
    cors: async (name, rules) => void (await ask(name, { cors: "" }, rules ?? undefined)),
  };
}

/** Environment of a server whose objects are in a bucket. */
export const s3Settings = (place: S3Place, bucket: string) => ({
  VODBOX_STORAGE: "s3",
  VODBOX_S3_ENDPOINT: place.endpoint,
  VODBOX_S3_BUCKET: bucket,
  VODBOX_S3_REGION: place.region,
  VODBOX_S3_ACCESS_KEY_ID: place.accessKeyId,
  VODBOX_S3_SECRET_ACCESS_KEY: place.secretAccessKey,
});

export const newBucket = (name: string) => `${name}-${randomUUID().slice(0, 8)}`;

/**
 * A Ceph cluster with its S3 gateway, in memory and on loopback: a monitor, one store, `radosgw`. It verifies
 * signatures and their expiry like Amazon's.
 */
export async function startS3Server(): Promise<S3Place & { close(): Promise<void> }> {
  const folder = newFolder();
  const children: ChildProcess[] = [];
  const close = async () => {
    for (const child of children.reverse()) await ended(child);
    removeFolder(folder);
  };
  try {
    const monitorPort = await freePort();
    const port = await freePort();
    const conf = join(folder, "ceph.conf");
    const fsid = randomUUID();
    writeFileSync(conf, configuration(folder, { fsid, monitorPort }));
    const tool = (name: string, ...args: string[]) => run(name, ["-c", conf, ...args]);
    const start = (name: string, ...args: string[]) => {
      const log = openSync(join(folder, `${name}.out`), "a");
      // The cluster ends with a test run that is killed.
      const command = ["--pdeathsig", "KILL", name, "-c", conf, "-f", ...args];
      const child = spawn("setpriv", command, { stdio: ["ignore", log, log] });
      children.push(child);
      return child;
    };

    const monmap = join(folder, "monmap");
    await run("monmaptool", ["--create", "--addv", "a", `[v2:127.0.0.1:${monitorPort}]`, "--fsid", fsid, monmap]);
    await tool("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap);
    start("ceph-mon", "-i", "a");
    const uuid = randomUUID();
    await tool("ceph", "osd", "new", uuid, "0");
    mkdirSync(join(folder, "osd"));
    await tool("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", uuid);
    start("ceph-osd", "-i", "0");

    const accessKeyId = "vodboxtests";
    const secretAccessKey = "secret-of-the-tests/with+signs";
    const user = ["--uid", "tests", "--display-name", "tests"];
    const credentials = ["--access-key", accessKeyId, "--secret-key", secretAccessKey];
    await tool("radosgw-admin", "-n", "client.admin", "user", "create", ...user, ...credentials);
    const gateway = start("radosgw", "-n", "client.admin", "--rgw-frontends", `beast endpoint=127.0.0.1:${port}`);
    const endpoint = `http://127.0.0.1:${port}`;
    await answers(endpoint, gateway, join(folder, "radosgw.out"));
    return { endpoint, accessKeyId, secretAccessKey, region: "default", close };
  } catch (error) {
    await close();
    throw error;
  }
}

const configuration = (folder: string, { fsid, monitorPort }: { fsid: string; monitorPort: number }) => `[global]
fsid = ${fsid}
mon host = [v2:127.0.0.1:${monitorPort}]
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
ms bind ipv6 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
run dir = ${folder}
admin socket = ""
pid file = ""
log file = ""
log to stderr = true
err to stderr = true
crash dir = ${folder}
mon data = ${folder}/mon
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 0
osd data = ${folder}/osd
osd objectstore = memstore
memstore device bytes = 8589934592
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd max object name len = 2048
rgw run sync thread = false
rgw enable usage log = false
rgw dns name = s3.localhost
rgw thread pool size = 64
`;

async function answers(endpoint: string, gateway: ChildProcess, log: string): Promise<void> {
  for (let waited = 0; waited < READY_MS && gateway.exitCode === null; waited += 100) {
    const response = await fetch(endpoint).catch(() => null);
    if (response?.ok) return;
    await sleep(100);
  }
  throw new Error(`The S3 server did not come up:\n${readFileSync(log, "utf8").slice(-2000)}`);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}
