import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { readyAsset } from "#test/support/flow.ts";

/** A ready asset in a store that is not a disk of this machine; `reads` are the keys of objects whose bytes were read. */
async function remoteAsset(cache: string) {
  const app = await testApp({ cache });
  const key = await app.key((await app.tenant()).id);
  const { asset, contract } = await readyAsset(app, key, { playback_policy: "public" });
  const store = await app.opened.app.openStore("local");
  const reads: string[] = [];
  app.opened.app.objects?.use({
    ...store,
    localPath: () => null,
    get(...all) {
      reads.push(all[0]);
      return store.get(...all);
    },
  });
  const manifest = async () => {
    const { status, text } = await app.call("GET", `/media/${asset.external_id}/master.m3u8`);
    expect(status).toBe(200);
    return text;
  };
  return { store, reads, manifest, key: contract.outputs.manifest_path as string };
}

test("with fs a manifest of a remote store is read once, until its object changes", async () => {
  const { store, reads, manifest, key } = await remoteAsset("fs");
  const first = await manifest();
  // It is cached after the response.
  await expect
    .poll(async () => {
      reads.length = 0;
      const text = await manifest();
      return { reads, text };
    })
    .toEqual({ reads: [], text: first });
  await store.put(key, Buffer.from("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2000\nhigh/playlist.m3u8\n"));
  expect(await manifest()).toContain("high/playlist.m3u8");
  expect(reads).toEqual([key]);
  await store.delete(key);
  await expect(manifest()).rejects.toThrow("404");
});

test("with memory it is read for each request", async () => {
  const { reads, manifest, key } = await remoteAsset("memory");
  await manifest();
  await manifest();
  expect(reads).toEqual([key, key]);
});
