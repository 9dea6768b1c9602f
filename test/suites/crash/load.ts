import type { Answer, CallOptions } from "#test/support/client.ts";
import type { Random } from "#test/support/crash/random.ts";
import { putArtifacts } from "#test/support/flow.ts";
import type { RunningServer } from "#test/support/process.ts";
import { type Key, type Ledger, sha256, type Upload, type Work } from "./ledger.ts";

const BIG_BYTES = 2_000_000;
let names = 0;

/** A client's work in progress; it outlives the server. */
export type Clients = { uploading: (Upload | null)[]; working: (Work | null)[]; worked: Set<string> };
export const newClients = (uploaders: number, workers: number): Clients => ({
  uploading: Array(uploaders).fill(null),
  working: Array(workers).fill(null),
  worked: new Set(),
});

type Scene = { server: RunningServer; ledger: Ledger; random: Random; clients: Clients; key: string; tenantId: number };

/** The server has exited: the client stops and resumes with the next server. */
class Gone extends Error {}

/** All clients concurrently, each until the server exits. An unexpected refusal fails the test. */
export async function loadUntilGone(scene: Scene): Promise<void> {
  const { clients } = scene;
  const untilGone = async (turn: () => Promise<unknown>) => {
    try {
      for (;;) await turn();
    } catch (error) {
      if (!(error instanceof Gone)) throw error;
    }
  };
  await Promise.all([
    ...clients.uploading.map((_, at) => untilGone(() => uploadOne(scene, at))),
    ...clients.working.map((_, at) => untilGone(() => workOne(scene, at, 1))),
    untilGone(() => issueAndRevoke(scene)),
  ]);
}

/** Finishes all leased and queued jobs. */
export async function finish(scene: Scene): Promise<void> {
  const { clients } = scene;
  await Promise.all(clients.uploading.map((upload, at) => upload && uploadOne(scene, at)));
  await Promise.all(
    clients.working.map(async (_, at) => {
      while (await workOne(scene, at));
    }),
  );
}

async function ask({ server, ledger }: Scene, method: string, path: string, options: CallOptions): Promise<Answer> {
  const answer = await server.call(method, path, options).catch(() => {
    throw new Gone();
  });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  ledger.acknowledge();
  return answer;
}

/** Initiate, PUT, complete; resumes where it stopped, and repeats every step as a careful client does. */
async function uploadOne(scene: Scene, at: number): Promise<void> {
  const { random, clients, key } = scene;
  const upload = clients.uploading[at] ?? newUpload(scene);
  clients.uploading[at] = upload;
  if (upload.id === undefined) {
    const { body } = await ask(scene, "POST", "/api/v1/uploads/initiate", {
      key,
      headers: { "idempotency-key": upload.name },
      body: { filename: `${upload.name}.mp4`, bytes_expected: upload.bytes.length, title: upload.name },
    });
    upload.id = body.id;
    upload.assetId = body.asset_id;
  }
  if (!upload.put) {
    // The URL names the server that issued it, which had another port.
    const { body } = await ask(scene, "GET", `/api/v1/uploads/${upload.id}`, { key });
    await ask(scene, "PUT", body.upload_url, { raw: upload.bytes, headers: body.upload_headers });
    upload.put = true;
  }
  // Sometimes twice concurrently, like a client after a timeout.
  const complete = () =>
    ask(scene, "POST", `/api/v1/uploads/${upload.id}/complete`, { key, body: { bytes_received: upload.bytes.length } });
  const answers = await Promise.allSettled(random.chance(0.2) ? [complete(), complete()] : [complete()]);
  for (const answer of answers) {
    if (answer.status === "rejected") continue;
    const jobId = answer.value.body.transcoding_job.id;
    if (upload.jobId !== undefined && upload.jobId !== jobId) throw new Error(`Two jobs for upload ${upload.id}`);
    upload.jobId = jobId;
  }
  for (const answer of answers) if (answer.status === "rejected") throw answer.reason;
  clients.uploading[at] = null;
}

function newUpload({ random, ledger }: Scene): Upload {
  const bytes = random.bytes(random.chance(0.25) ? BIG_BYTES : random.whole(1, 60_000));
  const upload: Upload = { name: `upload-${++names}`, bytes, sha256: sha256(bytes) };
  ledger.uploads.push(upload);
  return upload;
}

async function issueAndRevoke(scene: Scene): Promise<void> {
  const { server, ledger, random, tenantId } = scene;
  const { body } = await ask(scene, "POST", "/api/v1/api_keys", {
    admin: server.admin,
    body: { tenant_id: tenantId, scopes: ["assets:read"] },
  });
  const key: Key = { id: body.id, token: body.token, revoked: "no" };
  ledger.keys.push(key);
  await ask(scene, "GET", "/api/v1/assets?limit=1", { key: key.token });
  if (random.chance(0.5)) return;
  key.revoked = "asked";
  await ask(scene, "DELETE", `/api/v1/api_keys/${key.id}`, { admin: server.admin });
  key.revoked = "yes";
}

/** A worker without an encoder. False: there was no job. */
async function workOne(scene: Scene, at: number, waitSeconds = 0): Promise<boolean> {
  const { server, ledger, random, clients } = scene;
  const work = clients.working[at] ?? { claimKey: `claim-${++names}` };
  clients.working[at] = work;
  // Repeated after a restart with the same key: the same lease, with URLs of the new server.
  const claimed = await ask(scene, "POST", "/api/v1/transcoding_jobs/next", {
    worker: server.worker,
    headers: { "idempotency-key": work.claimKey },
    body: { worker_id: `worker-${at}`, wait_seconds: waitSeconds },
  }).catch((error) => {
    // The one correct refusal: the job was completed, and only the response was lost.
    if (work.paths && String(error.message).includes("stale_lease")) return null;
    throw error;
  });
  if (claimed?.status === 204) {
    clients.working[at] = null;
    return false;
  }
  const contract = claimed?.body ?? work.contract;
  if (work.contract && work.contract.lease.token !== contract.lease.token) throw new Error("Another lease for one key");
  work.contract = contract;
  const call = (name: string, body: unknown) =>
    ask(scene, "POST", `/api/v1/transcoding_jobs/${contract.job.id}/${name}`, {
      worker: server.worker,
      lease: contract.lease.token,
      body,
    });
  if (claimed) {
    const source = await ask(scene, "GET", contract.source.url, {});
    if (source.headers.get("content-length") !== String(ledger.ofAsset(contract.job.asset_id)?.bytes.length))
      throw new Error(`The source of asset ${contract.job.asset_id} is not what was uploaded`);
    await call("heartbeat", { progress: random.whole(0, 100), stage: "encoding" });
    work.paths = await putArtifacts(server, contract).catch((error: Error) => {
      if (error instanceof TypeError) throw new Gone();
      throw error;
    });
  }
  const { body } = await call("complete", work.paths);
  if (body.status !== "completed") throw new Error(`A completed job is ${body.status}`);
  if (clients.worked.has(`${contract.job.id}`)) throw new Error(`Job ${contract.job.id} was given to two workers`);
  clients.worked.add(`${contract.job.id}`);
  ledger.completedJobs.set(contract.job.id, contract.job.asset_id);
  clients.working[at] = null;
  return true;
}
