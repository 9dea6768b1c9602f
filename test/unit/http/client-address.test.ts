import { isIP } from "node:net";
import { expect, test } from "vitest";
import { clientAddresses } from "#platform/http/client-address.ts";
import { networkOf } from "#src/lib/network/addresses.ts";
import { processorMs } from "#test/support/processor-time.ts";
import { fc } from "#test/support/property.ts";

const PROXIES = ["127.0.0.1/32", "10.0.0.0/8", "::1/128", "fd00::/8"];
const CLIENT = "203.0.113.7";

type Row = [about: string, peer: string, headers: Record<string, string>, found: string];
const rows: Row[] = [
  ["no proxy", CLIENT, {}, CLIENT],
  ["a spoofing stranger", CLIENT, { "x-forwarded-for": "1.2.3.4" }, CLIENT],
  ["a spoofing stranger in RFC 7239's words", CLIENT, { forwarded: "for=1.2.3.4" }, CLIENT],
  ["a stranger in IPv6's clothes", `::ffff:${CLIENT}`, { "x-forwarded-for": "1.2.3.4" }, CLIENT],
  ["a proxy that says nothing", "127.0.0.1", {}, "127.0.0.1"],
  ["a proxy", "127.0.0.1", { "x-forwarded-for": CLIENT }, CLIENT],
  ["a proxy in IPv6's clothes", "::ffff:127.0.0.1", { "x-forwarded-for": `::ffff:${CLIENT}` }, CLIENT],
  ["a proxy over IPv6", "::1", { "x-forwarded-for": CLIENT }, CLIENT],
  ["what the client wrote before", "127.0.0.1", { "x-forwarded-for": `1.2.3.4, 10.0.0.9, ${CLIENT}` }, CLIENT],
  ["two proxies", "127.0.0.1", { "x-forwarded-for": `1.2.3.4,${CLIENT} , 10.1.2.3` }, CLIENT],
  ["proxies alone", "127.0.0.1", { "x-forwarded-for": "10.0.0.2, 10.0.0.1" }, "10.0.0.2"],
  ["a port", "127.0.0.1", { "x-forwarded-for": `${CLIENT}:4711` }, CLIENT],
  ["IPv6", "127.0.0.1", { "x-forwarded-for": "2001:DB8::0:1" }, "2001:db8::1"],
  ["IPv6 in brackets", "127.0.0.1", { "x-forwarded-for": "[2001:db8::1]" }, "2001:db8::1"],
  ["IPv6 with a port", "127.0.0.1", { "x-forwarded-for": "[2001:db8::1]:443" }, "2001:db8::1"],
  ["IPv4 in brackets", "127.0.0.1", { "x-forwarded-for": "[1.2.3.4]" }, "127.0.0.1"],
  ["a zone", "127.0.0.1", { "x-forwarded-for": "fe80::1%eth0" }, "127.0.0.1"],
  ["nonsense", "127.0.0.1", { "x-forwarded-for": "unknown" }, "127.0.0.1"],
  ["nothing", "127.0.0.1", { "x-forwarded-for": "" }, "127.0.0.1"],
  ["nonsense right of an address", "127.0.0.1", { "x-forwarded-for": `${CLIENT}, x` }, "127.0.0.1"],
  ["nonsense left of a proxy", "127.0.0.1", { "x-forwarded-for": "x, 10.0.0.1" }, "10.0.0.1"],
  ["a number that could be an address", "127.0.0.1", { "x-forwarded-for": "3405803783" }, "127.0.0.1"],
  ["octal", "127.0.0.1", { "x-forwarded-for": "0177.0.0.1" }, "127.0.0.1"],
  ["a name", "127.0.0.1", { "x-forwarded-for": "localhost" }, "127.0.0.1"],
  ["a port too many", "127.0.0.1", { "x-forwarded-for": `${CLIENT}:1:2` }, "127.0.0.1"],
  ["Forwarded", "127.0.0.1", { forwarded: `for=${CLIENT}` }, CLIENT],
  ["Forwarded, with all its parts", "127.0.0.1", { forwarded: `by=10.0.0.1;For="${CLIENT}:80"; proto=https` }, CLIENT],
  ["Forwarded of two hops", "127.0.0.1", { forwarded: `for=1.2.3.4, for=${CLIENT};by=10.0.0.1, for=10.0.0.2` }, CLIENT],
  ["Forwarded IPv6", "127.0.0.1", { forwarded: 'for="[2001:db8:cafe::17]:4711"' }, "2001:db8:cafe::17"],
  ["Forwarded IPv6 that is escaped", "127.0.0.1", { forwarded: 'for="\\[2001:db8::17\\]"' }, "2001:db8::17"],
  ["Forwarded, hidden", "127.0.0.1", { forwarded: "for=_gazonk" }, "127.0.0.1"],
  ["Forwarded, unknown", "127.0.0.1", { forwarded: "for=unknown" }, "127.0.0.1"],
  ["Forwarded without for", "127.0.0.1", { forwarded: `for=${CLIENT}, proto=https` }, "127.0.0.1"],
  ["a comma in quotes", "127.0.0.1", { forwarded: `for=${CLIENT};host="a,for=1.2.3.4"` }, CLIENT],
  ["an open quote", "127.0.0.1", { forwarded: `for=1.2.3.4, host="x, for=${CLIENT}` }, "127.0.0.1"],
  ["no pair", "127.0.0.1", { forwarded: "1.2.3.4" }, "127.0.0.1"],
  ["both, alike", "127.0.0.1", { forwarded: `for=${CLIENT}`, "x-forwarded-for": CLIENT }, CLIENT],
  ["both, one of them the client's", "127.0.0.1", { forwarded: "for=1.2.3.4", "x-forwarded-for": CLIENT }, "127.0.0.1"],
];

test("the client is the last address that is not a trusted proxy", () => {
  const addressOf = clientAddresses(PROXIES);
  for (const [about, peer, headers, found] of rows)
    expect.soft(addressOf(peer, new Headers(headers)), about).toBe(found);
});

test("without trusted proxies the socket's address is used, whatever the headers", () => {
  const addressOf = clientAddresses([]);
  for (const [about, peer, headers] of rows)
    expect.soft(addressOf(peer, new Headers(headers)), about).toBe(peer.replace("::ffff:", ""));
});

const ipv4 = fc.ipV4().filter((address) => !/^(10|127)\./.test(address));
const hop = fc.oneof(
  ipv4,
  fc.ipV6(),
  fc.constantFrom("10.0.0.1", "127.0.0.1", "[::1]:80", "unknown", "", "[", '"', ";", "for="),
  fc.string({ maxLength: 20 }).map((text) => text.replaceAll(/[^\x20-\x7e]/g, "")),
);

test("whatever a client sends, the address is the one that the nearest proxy saw", () => {
  const addressOf = clientAddresses(PROXIES);
  fc.assert(
    fc.property(fc.array(hop, { maxLength: 8 }), ipv4, fc.nat({ max: 3 }), (spoofed, client, proxies) => {
      const seen = [client, ...Array.from({ length: proxies }, (_, index) => `10.0.0.${index}`)];
      const listed = new Headers({ "x-forwarded-for": [...spoofed, ...seen].join(", ") });
      expect(addressOf("127.0.0.1", listed)).toBe(client);
      expect(addressOf(client, listed)).toBe(client);
      // RFC 7239's values may be quoted, and a client may leave the quote open: the proxy's own address is used then.
      const told = new Headers({
        forwarded: [...spoofed.map((each) => `for=${each}`), ...seen.map((each) => `for="${each}"`)].join(", "),
      });
      expect([client, "127.0.0.1"]).toContain(addressOf("127.0.0.1", told));
    }),
    { numRuns: 500 },
  );
});

test("any header gives an address, and fast", () => {
  const addressOf = clientAddresses(PROXIES);
  fc.assert(
    fc.property(fc.string(), (text) => {
      const value = text.replaceAll(/[^\x20-\x7e]/g, "");
      for (const name of ["x-forwarded-for", "forwarded"])
        expect(isIP(addressOf("127.0.0.1", new Headers({ [name]: value })))).not.toBe(0);
    }),
  );
  for (const piece of ["10.0.0.1,", 'for="\\', "for=10.0.0.1;", 'for="', " ", "for=a\\"])
    for (const name of ["x-forwarded-for", "forwarded"]) {
      const headers = new Headers({ [name]: piece.repeat(16_000 / piece.length) });
      expect(
        processorMs(() => addressOf("127.0.0.1", headers)),
        `${name}: ${piece}`,
      ).toBeLessThan(200);
    }
});

test("limits count a /64 of IPv6 as one, and an IPv4 address as itself", () => {
  expect(networkOf("2001:db8:1:2:3:4:5:6")).toBe(networkOf("2001:db8:1:2::1"));
  expect(networkOf("2001:db8:1:2::1")).not.toBe(networkOf("2001:db8:1:3::1"));
  expect(networkOf("203.0.113.7")).toBe("203.0.113.7");
  expect(networkOf("local")).toBe("local");
});
