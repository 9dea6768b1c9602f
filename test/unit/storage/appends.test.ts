import { join } from "node:path";
import { localStore } from "#storage/objects/local.ts";
import { partAppends } from "#storage/objects/part-appends.ts";
import type { Appends } from "#storage/objects/store.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { appendsContract } from "#test/support/storage/appends-contract.ts";

const signing = { secret: "secret", baseUrl: "http://vodbox.test" };
const UNIT = 300_000;

appendsContract("growing objects of a local store", UNIT, async () => {
  const root = emptyFolder();
  const open = () => localStore({ root, signing });
  const store = open();
  return { store, appends: store.appends as Appends, again: () => open().appends as Appends };
});

// S3's own test runs the same over S3; this one covers more in less time.
appendsContract("growing objects in parts", UNIT, async () => {
  const store = localStore({ root: emptyFolder(), signing });
  const folder = join(emptyFolder(), "growing");
  const open = () => partAppends(store, folder, { partBytes: UNIT / 2 });
  return { store, appends: open(), again: open };
});
