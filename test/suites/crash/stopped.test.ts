import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

async function uploadTo(server: RunningServer, bytes: number) {
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  const body = { tenant_id: tenant.body.id, filename: "a.mp4", bytes_expected: bytes };
  return (await server.as({ admin }).initiateUpload(body)).body;
}

/** A PUT whose first half is sent; the caller sends the rest. */
function slowPut(url: string, bytes: number) {
  const sent = request(url, { method: "PUT", headers: { "content-length": bytes } });
  const answered = Promise.withResolvers<{ status: number | undefined; connection: string | undefined }>();
  sent.on("response", (answer) =>
    answer
      .resume()
      .on("end", () => answered.resolve({ status: answer.statusCode, connection: answer.headers.connection })),
  );
  sent.on("error", answered.reject);
  sent.write(Buffer.alloc(bytes / 2, 7));
  return { sendRest: () => sent.end(Buffer.alloc(bytes / 2, 7)), answered: answered.promise };
}

const startLogging = () => startServer(emptyFolder(), { env: { VODBOX_LOG_LEVEL: "info" } });

/** The result on a new connection: refused, or a response and whether the server closes it. */
async function knock({ base, as }: RunningServer): Promise<"refused" | "closing" | "open"> {
  const answer = await as({ headers: { connection: "keep-alive" } })
    .getHealth()
    .catch(() => null);
  expect(base).toMatch(/^http/);
  return answer === null ? "refused" : answer.headers.get("connection") === "close" ? "closing" : "open";
}

test("SIGTERM: requests in progress are completed and answered, new ones refused, 0", async () => {
  const [server, reference] = await Promise.all([startLogging(), startLogging()]);
  const upload = await uploadTo(server, 2_000_000);
  const put = slowPut(upload.upload_url, 2_000_000);
  // Its request never ends, so that its stop takes the grace period.
  const unending = slowPut((await uploadTo(reference, 2_000_000)).upload_url, 2_000_000).answered.catch(() => null);
  // An idle kept-alive connection must not delay the stop.
  const idle = connect(Number(new URL(server.base).port), "127.0.0.1");
  await once(idle, "connect");
  idle.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
  await once(
    idle.on("error", () => {}),
    "data",
  );
  const closed = once(idle, "close");
  expect(await knock(server)).toBe("open");

  for (const each of [reference, server]) each.child.kill("SIGTERM");
  await until("the server is stopping", () => server.stderr().includes('"stopping"'));
  await closed;
  expect(["refused", "closing"]).toContain(await knock(server));
  put.sendRest();
  expect(await put.answered).toEqual({ status: 200, connection: "close" });
  // The grace period was not used up: the response was the last thing to do.
  expect(await Promise.race([server, reference].map(({ ended }) => ended))).toBe(await server.ended);
  expect((await server.ended).code).toBe(0);
  expect((await reference.ended).code).toBe(0);
  expect(await unending).toBeNull();

  const again = await startServer(server.dataDir);
  const complete = await again.as({ admin: again.admin }).completeUpload(upload.id, { bytes_received: 2_000_000 });
  expect(complete.status).toBe(200);
});

test("SIGTERM: a request that never ends is cut after the grace period, 0, and nothing partial is stored", async () => {
  const server = await startServer(emptyFolder());
  const upload = await uploadTo(server, 2_000_000);
  const put = slowPut(upload.upload_url, 2_000_000);
  const cut = put.answered.catch((error: NodeJS.ErrnoException) => error.code);
  const waiting = server
    .as({ worker: server.worker, headers: { "idempotency-key": "waits" } })
    .claimJob({ wait_seconds: 20 })
    .then((answer) => answer.status);
  expect((await server.as().getHealth()).status).toBe(200);
  server.child.kill("SIGTERM");
  // A request that waits for a job immediately gets the response that there is none.
  expect(await waiting).toBe(204);
  expect((await server.ended).code).toBe(0);
  expect(await cut).toBe("ECONNRESET");
  const again = await startServer(server.dataDir);
  const complete = await again.as({ admin: again.admin }).completeUpload(upload.id, { bytes_received: 1_000_000 });
  expect([complete.status, complete.error.code]).toEqual([422, "bytes_mismatch"]);
});
