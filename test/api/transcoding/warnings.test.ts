import { beforeAll, describe, expect, test } from "vitest";
import { WARNING_CODES } from "#model/warnings.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { EARLY_MEDIA, EARLY_PLAN } from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { callback, contractOf, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { finish, nextTask } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});

const asset = async (id: number) => (await app.as(key).getAsset(id)).body;
const media = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };
const skipped = { code: "track_skipped", message: "Track 3 (audio, tta) cannot be decoded and was left out." };

/** Leases a job and completes it with these fields of `media`. */
async function completed(jobId: number, fields: object) {
  const contract = await contractOf(app, jobId);
  const paths = await putArtifacts(app, contract);
  return {
    contract,
    paths,
    answer: await callback(app, contract, "complete", { ...paths, media: { ...media, ...fields } }),
  };
}

describe("warnings of an asset", () => {
  test("are those that its worker reports: in the asset, in lists and in events", async () => {
    const made = await uploaded(app, key);
    expect((await asset(made.asset.id)).warnings).toEqual([]);
    await app.newEvents();
    expect((await completed(made.job.id, { warnings: [skipped] })).answer.status).toBe(200);
    expect(await asset(made.asset.id)).toMatchObject({ playback_status: "ready", error: null, warnings: [skipped] });
    const { body: list } = await app.as(key).listAssets();
    expect(list.find(({ id }: { id: number }) => id === made.asset.id)?.warnings).toEqual([skipped]);
    const ofAsset = async () => (await app.newEvents()).filter(({ type }) => type.startsWith("video.asset."));
    expect(await ofAsset()).toMatchObject([{ type: "video.asset.ready", data: { warnings: [skipped] } }]);
    expect((await app.as(key).deleteAsset(made.asset.id)).status).toBe(204);
    expect(await ofAsset()).toMatchObject([{ type: "video.asset.deleted", data: { warnings: [skipped] } }]);
  });

  test("are empty for an older worker, and again after an encode without any", async () => {
    const made = await readyAsset(app, key);
    expect((await asset(made.asset.id)).warnings).toEqual([]);
    const reencode = async (fields: object) => {
      const { body, status } = await app.as(key).reencodeAsset(made.asset.id, {});
      expect(status).toBeLessThan(300);
      expect((await completed(body.id, fields)).answer.status).toBe(200);
      return (await asset(made.asset.id)).warnings;
    };
    expect(await reencode({ warnings: [skipped] })).toEqual([skipped]);
    expect(await reencode({})).toEqual([]);
    expect(await reencode({ warnings: null })).toEqual([]);
  });

  test("cannot be changed by a client", async () => {
    const made = await readyAsset(app, key);
    const change = (warnings: unknown) =>
      app.as(key).unchecked.updateAsset(made.asset.id, { video_asset: { warnings } });
    expect((await change([])).status).toBe(200);
    expect((await change([skipped])).status).toBe(422);
  });

  const invalid = "validation_failed";
  const missing = "parameter_missing";
  const hostile: [name: string, warnings: unknown, code?: string][] = [
    ["an unknown code", [{ ...skipped, code: "everything_is_fine" }]],
    ["no code", [{ message: "?" }], missing],
    ["no message", [{ code: "track_skipped" }], missing],
    ["a message that is no text", [{ ...skipped, message: { toString: "?" } }]],
    ["a message that is too long", [{ ...skipped, message: "x".repeat(301) }]],
    ["a message with too many bytes", [{ ...skipped, message: "é".repeat(151) }]],
    ["a message with NUL", [{ ...skipped, message: "a\0b" }]],
    ["half a character", [{ ...skipped, message: "\ud83d" }]],
    ["too many", Array.from({ length: 81 }, () => skipped)],
    ["no list", skipped],
  ];
  test.each(hostile)(
    "are refused from a worker with %s, and nothing is published",
    async (_, warnings, code = invalid) => {
      const made = await uploaded(app, key);
      const { answer, contract, paths } = await completed(made.job.id, { warnings });
      expectError(answer, 422, code);
      expect(await asset(made.asset.id)).toMatchObject({ playback_status: "processing", warnings: [] });
      const again = await callback(app, contract, "complete", { ...paths, media });
      expect(again.status).toBe(200);
    },
  );

  test("have every code of the list, as many as a source can have", async () => {
    const made = await uploaded(app, key);
    const all = Array.from({ length: 80 }, (_, at) => ({
      code: WARNING_CODES[at % WARNING_CODES.length],
      message: "é".repeat(150),
      other: "ignored",
    }));
    expect((await completed(made.job.id, { warnings: all })).answer.status).toBe(200);
    expect((await asset(made.asset.id)).warnings).toEqual(all.map(({ code, message }) => ({ code, message })));
  });

  test("are there as soon as a part of it plays", async () => {
    const made = await uploaded(app, key, { early_playback: true });
    await finish(app, (await nextTask(app)).body, EARLY_PLAN);
    const { body: head } = await nextTask(app);
    const paths = await putArtifacts(app, head);
    const body = { ...paths, media: { ...EARLY_MEDIA, warnings: [skipped] } };
    expect((await callback(app, head, "publish", body)).status).toBe(200);
    expect(await asset(made.asset.id)).toMatchObject({ encoding_status: "partial", warnings: [skipped] });
  });
});
