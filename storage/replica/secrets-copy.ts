import { buffer } from "node:stream/consumers";
import * as v from "valibot";
import type { ObjectStore } from "../objects/store.ts";
import { listSecrets } from "./catalog.ts";
import { checksum, secretsKey } from "./names.ts";
import { jsonOf } from "./segment.ts";

/** Files of secrets by name. */
export type ReadSecrets = () => Record<string, string>;

const Stored = v.object({ format: v.literal(1), secrets: v.record(v.string(), v.string()) });
/** Rotations are rare, and a change is stored within this time. */
const LOOK_MS = 1000;

/** Stores the secrets of the data directory whenever they have changed. */
export class SecretsCopy {
  readonly #read: ReadSecrets;
  #sum = "";
  #lookAt = 0;

  constructor(read: ReadSecrets) {
    this.#read = read;
  }

  async store(store: ObjectStore, now: number): Promise<void> {
    if (performance.now() < this.#lookAt) return;
    this.#lookAt = performance.now() + LOOK_MS;
    const bytes = Buffer.from(JSON.stringify({ format: 1, secrets: this.#read() }));
    const sum = checksum(bytes);
    if (sum === this.#sum) return;
    if (this.#sum !== "" || (await listSecrets(store)).at(-1)?.sum !== sum)
      await store.put(secretsKey({ at: now, sum }), bytes);
    this.#sum = sum;
  }
}

/** The newest secrets of a replica; null when there are none. Throws Error when they are damaged. */
export async function newestSecrets(store: ObjectStore): Promise<Record<string, string> | null> {
  const name = (await listSecrets(store)).at(-1);
  if (!name) return null;
  const object = await store.get(name.key);
  const bytes = object ? await buffer(object.body) : Buffer.alloc(0);
  const parsed = v.safeParse(Stored, jsonOf(bytes));
  if (checksum(bytes) !== name.sum || !parsed.success)
    throw new Error(`The secrets in the replica are damaged (${name.key}).`);
  return parsed.output.secrets;
}
