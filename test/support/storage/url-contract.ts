import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { ObjectStore } from "#storage/objects/store.ts";
import { contentOf } from "./store-contract.ts";

export type Addressed = {
  store: ObjectStore;
  send(request: Request): Promise<Response>;
  /** Resolves when a URL that was valid for a second has expired. */
  pass(address: string): Promise<unknown>;
};
const soon = () => new Date(Date.now() + 60_000);
export const CONTRACT_KEY = "tenants/1/a b/100%/日本?#&=+~'.mp4";

/** Requirements for every store's presigned URLs, each through its own server. */
export function addressContract(name: string, open: () => Promise<Addressed>) {
  describe(name, () => {
    test("bytes are put to one URL and read from another, with name, type and ranges", async () => {
      const { store, send } = await open();
      const put = await store.signPut(CONTRACT_KEY, { expiresAt: soon(), maxBytes: 10, contentType: "video/mp4" });
      expect(put.method).toBe("PUT");
      const sent = await send(new Request(put.url, { method: "PUT", headers: put.headers, body: "0123456789" }));
      expect([sent.status, sent.headers.get("etag")]).toEqual([200, (await store.head(CONTRACT_KEY))?.etag]);
      expect(await contentOf(store, CONTRACT_KEY)).toBe("0123456789");

      const filename = 'my "film" ü.mp4';
      const get = await store.signGet(CONTRACT_KEY, { expiresAt: soon(), filename, contentType: "text/x-own" });
      const got = await send(new Request(get.url));
      expect(await got.text()).toBe("0123456789");
      expect(got.headers.get("content-type")).toBe("text/x-own");
      expect(got.headers.get("content-disposition")).toContain("filename*=UTF-8''my%20%22film%22%20%C3%BC.mp4");
      const some = await send(new Request(get.url, { headers: { range: "bytes=2-4" } }));
      expect([some.status, await some.text(), some.headers.get("content-range")]).toEqual([206, "234", "bytes 2-4/10"]);
    });

    test("a URL is valid for one key, one method, and as it was signed", async () => {
      const { store, send } = await open();
      await store.put(CONTRACT_KEY, Buffer.from("x"));
      const { url } = await store.signGet(CONTRACT_KEY, { expiresAt: soon(), contentType: "text/x-own" });
      const status = async (address: string, method = "GET") =>
        (await send(new Request(address, { method, ...(method === "PUT" && { body: "y" }) }))).status;
      expect(await status(url)).toBe(200);
      expect(await status(url, "PUT")).toBe(403);
      expect(await status(url.replace("tenants/1", "tenants/2"))).toBe(403);
      expect(await status(url.replace("x-own", "html"))).toBe(403);
      expect(await status(url.slice(0, -1) + (url.endsWith("0") ? "1" : "0"))).toBe(403);
      const put = await store.signPut(CONTRACT_KEY, { expiresAt: soon(), maxBytes: 10 });
      expect(await status(put.url)).toBe(403);
      expect(await contentOf(store, CONTRACT_KEY)).toBe("x");
    });

    test("a URL expires", async () => {
      const { store, send, pass } = await open();
      await store.put(CONTRACT_KEY, Buffer.from("x"));
      const expiresAt = new Date(Date.now() + 1000);
      const get = await store.signGet(CONTRACT_KEY, { expiresAt });
      const put = await store.signPut(CONTRACT_KEY, { expiresAt, maxBytes: 10 });
      await pass(get.url);
      expect((await send(new Request(get.url))).status).toBe(403);
      expect((await send(new Request(put.url, { method: "PUT", body: "y" }))).status).toBe(403);
      expect(await contentOf(store, CONTRACT_KEY)).toBe("x");
    });

    test("parts are put to their own URLs", async () => {
      const { store, send } = await open();
      const uploadId = await store.createMultipart(CONTRACT_KEY, { bytes: 7, partSize: 7 });
      const { url, method, headers } = await store.signPart(CONTRACT_KEY, uploadId, 1, {
        expiresAt: soon(),
        maxBytes: 7,
      });
      const sent = await send(new Request(url, { method, headers, body: "a part." }));
      const etag = sent.headers.get("etag") as string;
      expect([sent.status, etag]).toEqual([200, `"${createHash("md5").update("a part.").digest("hex")}"`]);
      const other = await send(new Request(url.replace(/(part_?number=)1/i, "$12"), { method, body: "a part." }));
      expect(other.status).toBe(403);
      expect(await store.listParts(CONTRACT_KEY, uploadId)).toEqual([{ partNumber: 1, bytes: 7, etag }]);
      await store.completeMultipart(CONTRACT_KEY, uploadId, [{ partNumber: 1, etag }]);
      expect(await contentOf(store, CONTRACT_KEY)).toBe("a part.");
    });
  });
}
