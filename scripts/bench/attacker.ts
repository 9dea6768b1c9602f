import { type Attacker, attackOn, attacksOf } from "./attacks.ts";

/** Sent to the process. It replies `ready`, and at the end the number of attacks by name. */
export type Order = Attacker & { seconds: number; perSecond: number; atOnce: number };
export type Report = { ready: true } | { counts: [name: string, count: number][] };

/**
 * The hostile client, in its own process so that building its bodies does not delay the client that is measured.
 * VODBOX_ATTACKS, a regular expression, selects attacks by name.
 */
const send = (report: Report) => process.send?.(report);

process.once("message", async (order: Order) => {
  const attacks = await attacksOf(order);
  const chosen = new RegExp(process.env.VODBOX_ATTACKS ?? "");
  send({ ready: true });
  const until = performance.now() + order.seconds * 1000;
  const counts = await attackOn(
    attacks.all.filter(({ name }) => chosen.test(name)),
    { goesOn: () => performance.now() < until, perSecond: order.perSecond, atOnce: order.atOnce },
  );
  attacks.stop();
  send({ counts: [...counts] });
  process.disconnect();
});
