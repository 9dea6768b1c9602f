import { expect, test } from "vitest";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

const WAITING = 20;

/** Like an idle worker: requests a job, and gets a response when there is one, or after twenty seconds. */
function waiter({ base, worker }: RunningServer, key: string) {
  const gone = new AbortController();
  const headers = { "x-svc-worker-token": worker, "idempotency-key": key, "content-type": "application/json" };
  const answer = fetch(`${base}/api/v1/transcoding_jobs/next`, {
    method: "POST",
    headers,
    body: JSON.stringify({ worker_id: key, wait_seconds: 20 }),
    signal: gone.signal,
  }).then(
    async (response) => (response.status === 200 ? ((await response.json()) as any) : response.status),
    () => "gone" as const,
  );
  return { answer, leave: () => gone.abort() };
}

test("each job wakes one of many waiting claims, the longest waiting first, and none that has disconnected", async () => {
  const server = await startServer(emptyFolder(), { env: { VODBOX_RATE_LIMIT_UPLOADS: "100000/1" } });
  const { admin } = server;
  await server.as({ admin }).createTenant({ name: "A", slug: "a" });
  const issued = await server.as({ admin }).createApiKey({ tenant_id: 1, scopes: ["assets:write"] });
  const first = waiter(server, "first");
  // Answered only after earlier requests have been accepted.
  await server.as().getHealth();
  const others = Array.from({ length: WAITING }, (_, n) => waiter(server, `w${n}`));
  await server.as().getReadiness();
  first.leave();
  expect(await first.answer).toBe("gone");

  const jobs: number[] = [];
  for (let n = 0; n < WAITING; n++) jobs.push((await uploaded(server, issued.body.token)).job.id);
  const answers = await Promise.all(others.map(({ answer }) => answer));
  // Each got one within its time: none was assigned to the one that disconnected.
  expect(answers.map((contract) => contract.job?.id).toSorted((a, b) => a - b)).toEqual(jobs);
});
