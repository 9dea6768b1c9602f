import type { HostileAttack } from "./attack.ts";
import { images } from "./images.ts";
import { lists } from "./lists.ts";
import { pipelining } from "./pipelining.ts";

/** All attacks. A new one is a file of this folder, and a line here. */
export const ATTACKS: HostileAttack[] = [...pipelining, ...lists, ...images];
