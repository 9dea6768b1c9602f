import { type Attacker, attackOn, attacksOf } from "./attacks.ts";

/** Told to the process: whom to attack, for how long, how often. It answers `ready`, and with the counts by attack at the end. */
export type Order = Attacker & { seconds: number; perSecond: number; atOnce: number };
export type Report = { ready: true } | { counts: [name: string, count: number][] };

/** The hostile client in a process of its own: building its bodies must not delay the clock of the tenant that is measured. */
const tell = (report: Report) => process.send?.(report);

process.once("message", async (order: Order) => {
  const attacks = await attacksOf(order);
  const chosen = new RegExp(process.env.VODBOX_ATTACKS ?? "");
  tell({ ready: true });
  const until = performance.now() + order.seconds * 1000;
  const counts = await attackOn(
    attacks.all.filter(({ name }) => chosen.test(name)),
    { goesOn: () => performance.now() < until, perSecond: order.perSecond, atOnce: order.atOnce },
  );
  attacks.stop();
  tell({ counts: [...counts] });
  process.disconnect();
});
