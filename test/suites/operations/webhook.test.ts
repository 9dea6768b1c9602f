import { expect, test } from "vitest";
import { json, refused, succeeded } from "#test/support/commands/outcome.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";
import { receiver, status } from "#test/support/receiver.ts";

test("an operator registers an endpoint, sees failures, and replays them", async () => {
  const there = await receiver(status(500));
  const env = {
    VODBOX_ADMIN_TOKEN: "",
    VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
    VODBOX_WEBHOOK_RETRY_SECONDS: "0,0,0,0,0",
  };
  const server = await startServer(emptyFolder(), { env });
  const at = ["--data", server.dataDir];
  const webhook = (...args: string[]) => json(["admin", "webhook", ...args, ...at]);
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", ...at]);
  const made = await webhook(
    "create",
    "--tenant",
    "a",
    "--url",
    there.url,
    "--events",
    "video.track.ready, video.asset.ready",
  );
  expect(made).toMatchObject({ tenant_id: 1, event_types: ["video.track.ready", "video.asset.ready"] });
  expect(made.secret).toMatch(/^whsec_/);
  expect(await webhook("list")).toMatchObject([{ id: made.id, url: there.url }]);
  const sent = [await webhook("test", String(made.id)), await webhook("test", String(made.id))];
  const filter = ["--tenant", "a", "--endpoint", String(made.id), "--status", "failed", "--since", "1h"];
  await until("six attempts of each", () => there.received.length === 12);
  const failed = await webhook("deliveries", ...filter);
  expect(failed).toMatchObject(sent.toReversed().map(({ id, event_id }) => ({ id, event_id, attempts: 6 })));

  there.behave(() => {});
  expect(await webhook("replay", "--failed", "--dry-run")).toEqual({
    dry_run: true,
    matched: 2,
    replayed: 0,
    paused: 0,
    unknown: [],
  });
  expect(await webhook("replay", "--failed", "--since", "1h")).toMatchObject({ dry_run: false, replayed: 2 });
  await until("both", () => there.received.length === 14);
  expect(
    there.received
      .slice(12)
      .map(({ json }) => json.id)
      .toSorted(),
  ).toEqual(sent.map(({ event_id }) => event_id).toSorted());
  expect(await webhook("replay", "--failed")).toMatchObject({ matched: 0, replayed: 0 });
  expect(await webhook("replay", sent[0].delivery_id, sent[1].event_id)).toMatchObject({ replayed: 2 });
  await until("both again", () => there.received.length === 16);

  const table = await succeeded(["admin", "webhook", "deliveries", ...at]);
  expect(table.stdout).toMatch(/^ID +TENANT +ENDPOINT +EVENT +EVENT ID +STATUS/);
  const shown = await succeeded(["admin", "webhook", "create", "--tenant", "a", "--url", there.url, ...at]);
  expect(shown.stdout).toContain("Save the secret now; it is not shown again.");
  await refused(["admin", "webhook", "replay", ...at], 2);
  await refused(["admin", "webhook", "replay", "--failed", "--status", "skipped", ...at], 2);
  await refused(["admin", "webhook", "replay", "--failed", "--since", "yesterday", ...at], 2);
  await refused(["admin", "webhook", "create", "--tenant", "a", "--url", "http://10.0.0.1/", ...at], 1);
  await refused(["admin", "webhook", "test", "77", ...at], 1);
});
