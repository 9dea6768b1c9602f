import type { HostileAttack } from "./attack.ts";
import { connections } from "./connections.ts";
import { exchanges, mixOf } from "./exchanges.ts";
import { images } from "./images.ts";
import { lists } from "./lists.ts";
import { pipelining } from "./pipelining.ts";
import { requests } from "./requests.ts";
import { srt } from "./srt.ts";

const SINGLE: HostileAttack[] = [...pipelining, ...lists, ...images, ...connections, ...requests, ...exchanges, ...srt];

/** What an attacker does at the same time, by the ends of the names. */
const MIXES: Record<string, string[]> = {
  connections: ["slow headers", "slow bodies", "never read", "open and close", "half-open RTMP"],
  requests: ["guessed keys", "sign-in attempts", "beacons", "signed URLs with nonsense", "1,000 parts"],
  "a tenant": ["event streams", "readers of assets", "clients of animations", "tiny parts", "never answer"],
};

const ending = (end: string): HostileAttack => {
  const found = SINGLE.find(({ name }) => name.endsWith(end));
  if (!found) throw new Error(`The name of no attack ends in ${end}`);
  return found;
};

/** All attacks. A new one is an entry of a table in this folder; a new file is listed here. */
export const ATTACKS: HostileAttack[] = [
  ...SINGLE,
  ...Object.entries(MIXES).map(([name, ends]) => mixOf(name, ends.map(ending))),
];
