import { expect, test } from "vitest";
import { json, refused, succeeded } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";

test("live channels are created, listed, given keys and tokens, and revoked; the running server applies changes immediately", async () => {
  const server = await startServer(emptyFolder(), { env: { VODBOX_ADMIN_TOKEN: "" } });
  const at = ["--data", server.dataDir];
  const live = (...args: string[]) => ["admin", "live", ...args, ...at];
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", ...at]);
  const { token: gateway } = await json(["admin", "token", "show", "live", ...at]);
  const may = async (action: string, password: string) => {
    const body = { action, path: "live/stage", password };
    return (await server.as({ bearer: gateway }).authorizeLive(body)).status;
  };

  const made = await succeeded(live("create", "--tenant", "a", "--channel", "stage", "--playback-policy", "signed"));
  const key = /^stream_key +(live_\w{40})$/m.exec(made.stdout)?.[1] as string;
  expect(made.stdout).toMatch(/^path +live\/stage$/m);
  expect(made.stdout).toContain("Save the stream key now; it is not shown again.");
  expect(await refused(live("create", "--tenant", "a", "--channel", "stage"), 1)).toContain("is taken");
  expect(await may("publish", key)).toBe(204);

  const { stream_key: fresh } = await json(live("rotate", "stage"));
  expect([await may("publish", key), await may("publish", fresh)]).toEqual([403, 204]);
  const token = await json(live("token", "stage", "--expires-in", "2h"));
  expect(token).toEqual({ path: "live/stage", token: expect.any(String), token_expires_at: expect.any(String) });
  expect(Date.parse(token.token_expires_at) - Date.now()).toBeGreaterThan(1.9 * 3_600_000);
  expect([await may("read", token.token), await may("read", "")]).toEqual([204, 403]);
  await refused(live("token", "stage", "--expires-in", "1s"), 1);
  expect(await refused(live("token", "nothing"), 1)).toContain("vodbox admin live list");

  expect((await succeeded(live("revoke", "stage"))).stdout).toBe("Channel stage is revoked.\n");
  expect([await may("publish", fresh), await may("read", token.token)]).toEqual([403, 403]);
  expect(await refused(live("rotate", "1"), 1)).toContain("revoked");
  const again = await json(live("create", "--tenant", "1", "--channel", "stage", "--name", "S", "--publisher", "ann"));
  expect(again).toMatchObject({ id: 2, name: "S", publisher: "ann", playback_policy: "signed" });
  const listed = (await succeeded(live("list", "--tenant", "a"))).stdout;
  expect(listed).toMatch(
    /^ID +TENANT +PATH +NAME +STATUS +VIEWERS +POLICY +PUBLISHER +REVOKED *\n2 +1 +live\/stage +S +idle +0 +signed +ann +– *\n1 +1 +live\/stage +stage +idle +0 +signed +– +(now|\d+ seconds? ago) *\n$/,
  );
  expect(listed).not.toContain(again.stream_key);
});

test("a channel's fields for streams are set, changed and shown", async () => {
  const server = await startServer(emptyFolder(), { env: { VODBOX_ADMIN_TOKEN: "" } });
  const at = ["--data", server.dataDir];
  const live = (...args: string[]) => ["admin", "live", ...args, ...at];
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", ...at]);
  const fields = ["--record", "off", "--dvr-seconds", "7200", "--low-latency", "off", "--takeover", "on"];
  const create = live("create", "--tenant", "a", "--channel", "stage", "--publisher", "ann", ...fields);
  const control = ["--enabled", "off", "--reconnect-seconds", "0", "--max-duration-seconds", "600"];
  const created = await json([...create, "--encoding-profile", "fast", "--captions", "en, pt-BR", ...control]);
  const set = {
    record: false,
    dvr_seconds: 7200,
    low_latency: false,
    takeover: true,
    encoding_profile: "fast",
    captions: ["en", "pt-BR"],
    enabled: false,
    reconnect_seconds: 0,
    max_duration_seconds: 600,
  };
  expect(created).toMatchObject(set);
  expect(await json(live("show", "stage"))).toMatchObject({ id: created.id, status: "idle", ...set });

  const updated = await succeeded(live("update", "stage", "--name", "Stage", "--record", "on", "--dvr-seconds", "0"));
  for (const line of [
    /^name +Stage$/m,
    /^record +true$/m,
    /^dvr_seconds +0$/m,
    /^takeover +true$/m,
    /^publisher +ann$/m,
  ])
    expect(updated.stdout).toMatch(line);
  expect(await refused(live("end", "stage"), 1)).toContain("not live");
  expect((await json(live("update", "1", "--max-duration-seconds", ""))).max_duration_seconds).toBeNull();
  const captioned = await succeeded(live("update", "1", "--captions-live", "en,de"));
  expect(captioned.stdout).toMatch(/^captions_live +en, de$/m);
  expect(captioned.stdout).toMatch(/^warnings +Captions are requested, but this server has no transcriber/m);
  const cleared = await json(live("update", "1", "--publisher", "", "--encoding-profile", "", "--captions", ""));
  expect(cleared).toMatchObject({ publisher: null, encoding_profile: null, captions: [], low_latency: false });
  expect(await refused(live("update", "stage", "--record", "yes"), 2)).toContain("--record must be on or off.");
  expect(await refused(live("update", "stage", "--dvr-seconds", "1h"), 2)).toContain("--dvr-seconds must be a whole");
});

test("the simulcast targets of a channel are added, listed, updated and removed; the key is read from standard input", async () => {
  const server = await startServer(emptyFolder(), { env: { VODBOX_ADMIN_TOKEN: "" } });
  const at = ["--data", server.dataDir];
  const live = (...args: string[]) => ["admin", "live", ...args, ...at];
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", ...at]);
  await json(live("create", "--tenant", "a", "--channel", "stage"));
  const url = ["--url", "rtmps://live.example.com/app"];
  expect(await refused(live("add-target", "stage", ...url), 1)).toContain("must end with the stream key");
  const add = live("add-target", "stage", ...url, "--name", "Other", "--stream-key-stdin");
  const added = await json(add, { input: "secret-key\n" });
  expect(added).toMatchObject({ id: 1, name: "Other", url: "rtmps://live.example.com/app", enabled: true });
  expect(await json(live("update-target", "stage", "1", "--enabled", "off"))).toMatchObject({ enabled: false });
  const listed = (await succeeded(live("targets", "stage"))).stdout;
  expect(listed).toMatch(
    /^ID +NAME +URL +ENABLED +STATUS +SINCE +DROPPED FRAMES +ERROR *\n1 +Other +rtmps:\/\/live\.example\.com\/app +no +idle +– +0 +– *\n$/,
  );
  expect(listed).not.toContain("secret-key");
  expect(await refused(live("remove-target", "stage", "x"), 2)).toContain("must be a number");
  expect((await succeeded(live("remove-target", "stage", "1"))).stdout).toBe("Target 1 is deleted.\n");
  expect(await json(live("targets", "stage"))).toEqual([]);
});
