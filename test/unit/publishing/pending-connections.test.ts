import { expect, test } from "vitest";
import { PendingConnections } from "#src/lib/publishing/pending-connections.ts";
import { StrangerLog } from "#src/lib/publishing/stranger-log.ts";

/** Opens connections named by their number; returns what is closed, and the connections. */
function opened(addresses: readonly string[], pendingConnections: number) {
  const pendings = new PendingConnections({ pendingConnections });
  const closed: number[] = [];
  const add = (address: string, name: number) => pendings.add(address, () => void closed.push(name));
  return { pendings, closed, add, all: addresses.map(add) };
}

test.each<[string, string[], number[]]>([
  ["of one address, the oldest", ["a", "a", "a", "a"], [0]],
  ["of several, the oldest", ["a", "b", "c", "d"], [0]],
  ["of the address with the most", ["a", "b", "b", "c", "c"], [1, 3]],
  ["also when a newer one of it comes", ["a", "b", "b", "b", "b"], [1, 2]],
  ["addresses of one IPv6 network count together", ["a", "2001:db8::1", "2001:db8::2", "b"], [1]],
])("a connection too many closes another: %s", (_, addresses, expected) => {
  const { closed, pendings } = opened(addresses, 3);
  expect(closed).toEqual(expected);
  expect(pendings.size).toBe(3);
});

test("one that gets further outlasts older and newer ones that do not", () => {
  const { closed, all, add } = opened(["a", "a", "a"], 3);
  all[0]?.advance();
  add("a", 3);
  add("a", 4);
  expect(closed).toEqual([1, 2]);
  add("a", 5);
  expect(closed).toEqual([1, 2, 3]);
});

test("one that publishes or has ended needs no place, and is not closed", () => {
  const { closed, all, add, pendings } = opened(["a", "a", "a"], 3);
  all[0]?.release();
  all[0]?.release();
  all[0]?.advance();
  add("a", 3);
  expect([closed, pendings.size]).toEqual([[], 3]);
});

test("each address has one line in a minute, and the next has the number of those before it", () => {
  const lines: [string, unknown][] = [];
  let now = 0;
  const log = new StrangerLog(
    (_, message, fields) => void lines.push([message, fields.not_logged]),
    () => now,
  );
  for (let count = 0; count < 1000; count++) log.write("info", "one", { address: "192.0.2.1" });
  log.write("info", "two", { address: "192.0.2.2" });
  expect(lines).toEqual([
    ["one", undefined],
    ["two", undefined],
  ]);
  now = 60_000;
  log.write("info", "one", { address: "192.0.2.1" });
  expect(lines.at(-1)).toEqual(["one", 999]);
  // However many addresses there are, and whatever they send, the log stays small.
  now = 200_000;
  lines.length = 0;
  for (let address = 0; address < 10_000; address++)
    log.write("info", "many", { address: `10.0.${address >> 8}.${address & 255}` });
  expect(lines.length).toBe(101);
});
