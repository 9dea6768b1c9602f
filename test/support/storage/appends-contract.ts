import { createHash } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import {
  type Appends,
  NoSuchMultipart,
  type ObjectStore,
  ObjectTooLarge,
  OffsetMismatch,
} from "#storage/objects/store.ts";

const KEY = "tenants/1/sources/film.mp4";
type Opened = { store: ObjectStore; appends: Appends /** As after a restart. */; again(): Appends };

/**
 * Requirements for appendable objects, over any store. `unit`: a length that makes several parts where there are parts.
 */
export function appendsContract(name: string, unit: number, open: () => Promise<Opened>) {
  const bytes = (letter: string, length = unit) => Buffer.alloc(length, letter);
  const put = (appends: Appends, offset: number, body: Buffer, more = {}) =>
    appends.append(KEY, Readable.from([body.subarray(0, 7), body.subarray(7)]), {
      offset,
      maxBytes: body.length,
      ...more,
    });

  describe(name, () => {
    test("sequential pieces form the object, also after restarts", async () => {
      const { store, again } = await open();
      const pieces = [bytes("a", 1), bytes("b", 2 * unit), bytes("c", unit - 1), bytes("d", 5)];
      expect(await again().held(KEY)).toBeNull();
      let at = 0;
      for (const piece of pieces) {
        expect(await put(again(), at, piece)).toBe(at + piece.length);
        at += piece.length;
        expect([await again().held(KEY), await again().settled(KEY)]).toEqual([at, at]);
      }
      expect(await store.head(KEY)).toBeNull();
      await expect(again().finish(KEY, at + 1)).rejects.toThrow(OffsetMismatch);
      expect(await again().finish(KEY, at)).toMatchObject({ key: KEY, bytes: at });
      const got = await store.get(KEY);
      expect(Buffer.concat(pieces).equals(await buffer(got?.body as Readable))).toBe(true);
      expect(await again().held(KEY)).toBeNull();
      await expect(again().finish(KEY, at)).rejects.toThrow(NoSuchMultipart);
      for await (const left of store.listMultiparts("")) expect(left).toBeUndefined();
    });

    test("a gap and too many bytes are refused, and a refused confirmation changes nothing", async () => {
      const { store, appends } = await open();
      await expect(put(appends, 1, bytes("x"))).rejects.toThrow(OffsetMismatch);
      await put(appends, 0, bytes("a", 10));
      await expect(put(appends, 11, bytes("x"))).rejects.toMatchObject({ held: 10 });
      await expect(put(appends, 10, bytes("x", 20), { maxBytes: 10 })).rejects.toThrow(ObjectTooLarge);
      const confirm = () => Promise.reject(new Error("over"));
      const held = (await appends.held(KEY)) as number;
      await expect(appends.finish(KEY, held, { confirm })).rejects.toThrow("over");
      expect([await appends.held(KEY), await store.head(KEY)]).toEqual([held, null]);
    });

    test("the received bytes of a truncated piece are kept; one that is verified counts whole or not at all", async () => {
      const { appends } = await open();
      const torn = new PassThrough();
      torn.write(bytes("a", 10));
      const failed = appends.append(KEY, torn, { offset: 0, maxBytes: unit });
      await new Promise((resolve) => torn.once("drain", resolve).write(bytes("a", 100_000)));
      torn.destroy(new Error("torn"));
      await expect(failed).rejects.toThrow("torn");
      const held = (await appends.settled(KEY)) as number;
      expect(held).toBeGreaterThan(0);
      const hash = createHash("sha256");
      const check = () => {
        throw new Error(hash.digest("hex"));
      };
      const wrong = bytes("w");
      const sum = createHash("sha256").update(wrong).digest("hex");
      await expect(put(appends, held, wrong, { hash, check })).rejects.toThrow(sum);
      expect(await appends.held(KEY)).toBe(held);
      expect(await put(appends, held, bytes("b"), { hash: createHash("md5"), check: () => {} })).toBe(held + unit);
    });

    test("the newer of two writers wins, and a discard ends and deletes all", async () => {
      const { store, appends } = await open();
      const slow = new PassThrough();
      const hanging = appends.append(KEY, slow, { offset: 0, maxBytes: unit });
      const ended = expect(hanging).rejects.toThrow("being sent again");
      expect(await put(appends, 0, bytes("a"))).toBe(unit);
      await ended;
      const last = appends.append(KEY, new PassThrough(), { offset: unit, maxBytes: unit });
      const over = expect(last).rejects.toThrow();
      await appends.discard(KEY);
      await over;
      await appends.discard(KEY);
      expect([await appends.held(KEY), await store.head(KEY)]).toEqual([null, null]);
      for await (const left of store.listMultiparts("")) expect(left).toBeUndefined();
    });
  });
}
