import { ATTACKS } from "./all.ts";
import type { Target } from "./attack.ts";

export type AttackOrder = { name: string; target: Target };

/**
 * One attack, in a process of its own, so that reading gigabytes does not delay the clients that are measured. Sends
 * `started`; it is killed at the end, so that all its connections are lost at once.
 */
process.once("message", async ({ name, target }: AttackOrder) => {
  const attack = ATTACKS.find((each) => each.name === name);
  if (!attack) throw new Error(`There is no attack ${name}`);
  process.send?.("started");
  await attack.run(target, new AbortController().signal);
});
