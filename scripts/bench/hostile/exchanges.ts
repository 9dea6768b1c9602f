import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { call } from "../processes.ts";
import { type HostileAttack, repeatedly, type Target } from "./attack.ts";

const own = ({ key }: Target) => ({ "x-api-key": key });
const PART_BYTES = 5 * 2 ** 20;

/** Attacks that need several requests each, or a server of the attacker. */
export const exchanges: HostileAttack[] = [
  {
    name: "16 × uploads that stop in the middle",
    run: (target, signal) =>
      repeatedly(signal, 16, async () => {
        const wanted = { filename: "a.mp4", bytes_expected: 10_000_000 };
        const upload = await call<any>(target.base, "POST", "/api/v1/uploads/initiate", wanted, own(target));
        const half = new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(100_000)),
        });
        const ends = AbortSignal.any([signal, AbortSignal.timeout(100)]);
        const init = { method: "PUT", body: half, duplex: "half", signal: ends };
        await fetch(upload.upload_url, init as RequestInit);
      }),
  },
  {
    name: "16 × uploads of many tiny parts",
    run: (target, signal) =>
      repeatedly(signal, 16, async () => {
        const wanted = { filename: "a.mp4", bytes_expected: 20 * PART_BYTES, part_size: PART_BYTES };
        const path = "/api/v1/uploads/initiate_multipart";
        const upload = await call<any>(target.base, "POST", path, wanted, own(target));
        for (let part_number = 1; part_number <= 20; part_number++) {
          const sign = `/api/v1/uploads/${upload.id}/sign_part`;
          const { url } = await call<any>(target.base, "POST", sign, { part_number }, own(target));
          await (await fetch(url, { method: "PUT", body: "x", signal })).arrayBuffer();
        }
      }),
  },
  {
    name: "webhooks to 20 receivers that never answer",
    async run(target, signal) {
      const receiver = createServer((incoming) => incoming.resume());
      await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
      const { port } = receiver.address() as AddressInfo;
      const ids: number[] = [];
      for (let n = 0; n < 20; n++) {
        const body = { url: `http://127.0.0.1:${port}/${n}` };
        ids.push((await call<{ id: number }>(target.base, "POST", "/api/v1/webhooks", body, own(target))).id);
      }
      await repeatedly(signal, 16, (n) =>
        call(target.base, "POST", `/api/v1/webhooks/${ids[n % ids.length]}/test`, undefined, own(target)),
      );
    },
  },
];

/** Several attacks together. */
export const mixOf = (name: string, attacks: readonly HostileAttack[]): HostileAttack => ({
  name: `mix: ${name}`,
  async prepare(target) {
    for (const attack of attacks) await attack.prepare?.(target);
  },
  run: async (target, signal) => void (await Promise.all(attacks.map((attack) => attack.run(target, signal)))),
});
