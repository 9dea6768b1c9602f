import { join } from "node:path";
import { expect, test } from "vitest";
import { s3Store } from "#storage/objects/s3.ts";
import { amount } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { stopCleanly } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";
import { caughtUp, contentsOf, load, readiness, replicated, slugsIn } from "#test/support/replicas.ts";
import { newBucket, s3Server } from "#test/support/s3-server.ts";

const LOST_MS = 1500;
const ROUNDS = amount(2, 3);

test("a replica on S3: rounds of loss, a stop, and a replica that is away for a while", async () => {
  const s3 = await s3Server();
  const bucket = newBucket("replica");
  await s3.bucket(bucket);
  const relay = await startRelay();
  relay.lead(Number(new URL(s3.endpoint).port));
  const replica = replicated(`s3://${bucket}/of/this/server`, {
    VODBOX_REPLICA_S3_ENDPOINT: relay.base,
    VODBOX_REPLICA_S3_REGION: s3.region,
    VODBOX_REPLICA_S3_ACCESS_KEY_ID: s3.accessKeyId,
    VODBOX_REPLICA_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
  });
  for (let round = 0; round < ROUNDS; round++) {
    const server = await replica.serve();
    await caughtUp(server);
    const writing = load(server);
    await writing.more(500);
    expect((await readiness(server)).replica.error).toBeNull();
    const lostAt = Date.now();
    server.child.kill("SIGKILL");
    replica.lose();
    await Promise.all([server.ended, writing.stop()]);
    await replica.restore();
    const found = slugsIn(replica.dataDir);
    const lost = [...writing.acknowledged].filter(([slug]) => !found.has(slug));
    expect(lost.filter(([, at]) => at < lostAt - LOST_MS)).toEqual([]);
  }
  const store = s3Store({ ...s3, bucket, pathStyle: true, prefix: "" });
  const { objects } = await store.list("");
  expect(objects.length).toBeGreaterThan(10);
  expect(objects.filter(({ key }) => !key.startsWith("of/this/server/"))).toEqual([]);

  const server = await replica.serve();
  await caughtUp(server);
  // Nothing listens there.
  relay.lead(1);
  const writing = load(server);
  await writing.more(amount(250, 500));
  relay.lead(Number(new URL(s3.endpoint).port));
  await writing.stop();
  await caughtUp(server);
  await stopCleanly(server);
  const to = join(emptyFolder(), "data");
  await replica.restore({ to });
  expect(contentsOf(to)).toEqual(contentsOf(replica.dataDir));
  const status = JSON.parse((await replica.admin("replica", "status", "--json", "--data", replica.dataDir)).stdout);
  expect(status).toMatchObject({ replica: `s3://${bucket}/of/this/server`, generations: ROUNDS + 1 });
});
