/** What an attacker knows: its own tenant, with a video of its own, and what anyone knows. */
export type Target = {
  base: string;
  key: string;
  tenantId: number;
  assetId: number;
  rtmpPort: number;
  srtPort: number;
};

/** Attackers have another address than the clients that are measured. */
export const ATTACKER = "127.0.0.2";

/** One way to stop the server. Its own failures are expected and ignored. */
export type HostileAttack = {
  name: string;
  /** Before anything is measured, such as filling the attacker's tenant. */
  prepare?(target: Target): Promise<void>;
  /** Attacks until `signal` aborts, and then leaves without a goodbye. */
  run(target: Target, signal: AbortSignal): Promise<void>;
};

/** Repeats `work` in `lanes` concurrent loops until `signal` aborts. */
export async function repeatedly(
  signal: AbortSignal,
  lanes: number,
  work: (n: number) => Promise<unknown>,
): Promise<void> {
  let n = 0;
  const lane = async () => {
    while (!signal.aborted) {
      const from = performance.now();
      await work(n++).catch(() => {});
      // A refusal is immediate: the attack must not only measure its own loop.
      if (performance.now() - from < 5) await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Requests a path and discards the response. */
export const discarded = async (
  { base, key }: Target,
  path: string,
  { signal, isAnonymous = false }: { signal: AbortSignal; isAnonymous?: boolean },
): Promise<void> => {
  const response = await fetch(base + path, { signal, headers: isAnonymous ? {} : { "x-api-key": key } });
  for await (const _ of response.body ?? []);
};
