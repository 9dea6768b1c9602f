import type { HostileAttack } from "./attack.ts";
import { connections } from "./connections.ts";
import { images } from "./images.ts";
import { lists } from "./lists.ts";
import { pipelining } from "./pipelining.ts";
import { requests } from "./requests.ts";
import { srt } from "./srt.ts";

const SINGLE: HostileAttack[] = [...pipelining, ...lists, ...images, ...connections, ...requests, ...srt];

/** Attacks of an attacker that knows several, by the ends of their names. */
const MIXES: Record<string, string[]> = {
  "a mix of connections": ["slow headers", "slow bodies", "never read", "open and close", "half-open RTMP"],
  "a mix of requests": ["guessed keys", "sign-in attempts", "beacons", "signed URLs with nonsense", "1,000 parts"],
  "a mix of a tenant": [
    "event streams",
    "readers of assets",
    "clients of animations",
    "tiny parts of an upload",
    "never respond",
  ],
};

const mixes = Object.entries(MIXES).map(([name, ends]): HostileAttack => {
  const attacks = ends.map((end) => {
    const found = SINGLE.find((each) => each.name.endsWith(end));
    if (!found) throw new Error(`No attack ends in ${end}`);
    return found;
  });
  return {
    name,
    async prepare(target) {
      for (const attack of attacks) await attack.prepare?.(target);
    },
    run: async (target, signal) => {
      await Promise.all(attacks.map((attack) => attack.run(target, signal)));
    },
  };
});

/** All attacks. A new one is an entry of a table in this folder; a new file is listed here. */
export const ATTACKS: HostileAttack[] = [...SINGLE, ...mixes];
