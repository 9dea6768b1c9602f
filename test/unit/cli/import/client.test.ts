import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { providerClient, retryAfterMs } from "#cli/import/client.ts";
import { download } from "#cli/import/download.ts";
import { takeHls } from "#cli/import/hls.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";

type Handle = (request: IncomingMessage, response: ServerResponse) => void;
async function listen(handle: Handle): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const clientOf = (base: string) =>
  providerClient({ title: "Acme", base, credentials: () => ({ authorization: "Bearer secret" }) });

describe("a hostile API", () => {
  const cases: [name: string, handle: Handle, fault: RegExp][] = [
    [
      "a page in place of JSON",
      (_, to) => to.setHeader("content-type", "text/html").end("<html>"),
      /did not answer with JSON/,
    ],
    ["JSON that is cut off", (_, to) => to.end('{"a":'), /did not answer with JSON/],
    ["401", (_, to) => to.writeHead(401).end("secret"), /^Acme answered with status 401$/],
    [
      "a redirect to itself",
      (from, to) => to.writeHead(302, { location: from.url }).end(),
      /redirects more than 5 times/,
    ],
    [
      "a redirect to a file",
      (_, to) => to.writeHead(302, { location: "file:///etc/passwd" }).end(),
      /not http or https/,
    ],
    [
      "a URL with a password",
      (_, to) => to.writeHead(302, { location: "http://a:b@127.0.0.1/" }).end(),
      /with a password/,
    ],
    ["a day to wait", (_, to) => to.writeHead(429, { "retry-after": "86400" }).end(), /asks for a longer wait/],
  ];
  test.each(cases)("%s is one sentence", async (_, handle, fault) => {
    await expect(clientOf(await listen(handle)).json("/x")).rejects.toThrow(fault);
  });

  test("without end is left after the limit", async () => {
    const base = await listen((_, to) => {
      const send = () => {
        while (!to.destroyed && to.write(Buffer.alloc(65_536)));
      };
      to.on("drain", send);
      send();
    });
    await expect(clientOf(base).bytes(`${base}/x`, 1_000_000)).rejects.toThrow(/more than 1000000 bytes/);
  });

  test("elsewhere gets no credentials, by a redirect or in an answer", async () => {
    const seen: (string | undefined)[] = [];
    const elsewhere = await listen((from, to) => {
      seen.push(from.headers.authorization);
      to.end("{}");
    });
    const base = await listen((from, to) => {
      expect(from.headers.authorization).toBe("Bearer secret");
      to.writeHead(307, { location: `${elsewhere}/x` }).end();
    });
    const client = clientOf(base);
    expect(await client.json("/x")).toEqual({});
    await client.bytes(`${elsewhere}/file`, 100, { withCredentials: true });
    expect(seen).toEqual([undefined, undefined]);
    // What follows a POST would repeat its body.
    await expect(client.json("/x", { method: "POST", form: { password: "secret" } })).rejects.toThrow(
      /redirects a POST/,
    );
    expect(seen).toHaveLength(2);
  });

  test("errors that pass are waited for, by seconds or a date", async () => {
    const answers = [
      [429, "0"],
      [429, new Date(0).toUTCString()],
      [503, undefined],
    ] as const;
    let at = 0;
    const base = await listen((_, to) => {
      const [status, wait] = answers[at++] ?? [200];
      to.writeHead(status, wait === undefined ? {} : { "retry-after": wait }).end("[]");
    });
    expect(await clientOf(base).json("/x")).toEqual([]);
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(retryAfterMs("120", now)).toBe(120_000);
    expect(retryAfterMs("Thu, 01 Jan 2026 00:00:30 GMT", now)).toBe(30_000);
    expect(retryAfterMs("soon", now)).toBeNull();
  });
});

test("a limit of requests is waited for however often it is reached, and is no attempt", async () => {
  let asked = 0;
  const base = await listen((_, to) => {
    asked++;
    if (asked <= 12) to.writeHead(429, { "retry-after": "0" }).end();
    else if (asked <= 14) to.writeHead(503).end();
    else to.end("[]");
  });
  expect(await clientOf(base).json("/x")).toEqual([]);
  expect(asked).toBe(15);
});

describe("a download", () => {
  const content = Buffer.from("0123456789".repeat(60_000));
  const take = async (handle: Handle, bytes: number | null = null, refresh = async () => null as any) => {
    const base = await listen(handle);
    const path = join(emptyFolder(), "file");
    let moved = 0;
    const onBytes = (count: number) => {
      moved += count;
    };
    const media = { kind: "remote", url: `${base}/file`, bytes } as const;
    const size = await download({ client: clientOf(base), path, media, refresh, maxBytes: 1_000_000, onBytes });
    return { size, moved, file: readFileSync(path) };
  };
  const ranged: Handle = (from, to) => {
    const start = Number(/bytes=(\d+)/.exec(from.headers.range ?? "")?.[1] ?? 0);
    const head = { etag: '"1"', "content-length": content.length - start };
    if (start > 0) to.writeHead(206, { ...head, "content-range": `bytes ${start}-599999/600000` });
    else to.writeHead(200, head);
    // More than fetch reads ahead, which it loses with a connection.
    if (content.length - start <= 250_000) to.end(content.subarray(start));
    else to.write(content.subarray(start, start + 250_000), () => to.destroy());
  };

  test("whose connections break continues where it was", async () => {
    expect(await take(ranged, content.length)).toEqual({ size: 600_000, moved: 600_000, file: content });
  });

  const cases: [name: string, handle: Handle, bytes: number | null, fault: RegExp][] = [
    [
      "a length that never comes",
      (_, to) => to.writeHead(200, { "content-length": 700_000 }).write(content, () => to.destroy()),
      null,
      /ended after \d+ of 700000 bytes|not responding/,
    ],
    ["another length than listed", (_, to) => to.end(content), 5, /has 600000 bytes, but the provider lists 5/],
    [
      "a page in place of the file",
      (_, to) => to.setHeader("content-type", "text/html; charset=utf-8").end("<html>"),
      null,
      /a document in place of the file/,
    ],
    ["404", (_, to) => to.writeHead(404).end(), null, /missing at the provider/],
    ["nothing", (_, to) => to.end(), null, /is empty/],
    ["too much", (_, to) => to.writeHead(200, { "content-length": 1_000_001 }).end(), null, /more than 1000000 bytes/],
    ["too much, unannounced", (_, to) => to.end(Buffer.alloc(1_100_000)), null, /more than 1000000 bytes/],
  ];
  test.each(cases)("of %s fails", async (_, handle, bytes, fault) => {
    await expect(take(handle, bytes)).rejects.toThrow(fault);
  });

  test("asks for a new URL when one has expired, twice at most", async () => {
    let asked = 0;
    const handle: Handle = (from, to) => (from.url === "/file?2" ? to.end("x") : to.writeHead(403).end());
    const base = await listen(handle);
    const refresh = async () => ({ kind: "remote", url: `${base}/file?${++asked}`, bytes: null });
    expect(await take(handle, null, refresh)).toMatchObject({ size: 1 });
    expect(asked).toBe(2);
    const never: Handle = (_, to) => to.writeHead(403).end();
    await expect(
      take(never, null, async () => ({ kind: "remote", url: `${base}/never`, bytes: null })),
    ).rejects.toThrow(/403/);
  });
});

test("of a stream the largest rendition is taken, and none of an encrypted one", async () => {
  const media =
    "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n#EXT-X-BYTERANGE:3@2\nall.ts\n#EXTINF:2,\nb.ts\n#EXT-X-ENDLIST\n";
  const files: Record<string, string> = {
    "/m.m3u8":
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9,RESOLUTION=64x36\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=128x72\nhigh/v.m3u8\n",
    "/high/v.m3u8": media,
    "/high/all.ts": "__abc__",
    "/high/b.ts": "def",
    "/locked.m3u8": media.replace("#EXTINF", '#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF'),
  };
  const base = await listen((from, to) => {
    const body = files[from.url ?? ""];
    if (body === undefined) return void to.writeHead(404).end();
    // The range is ignored, as some servers do.
    to.end(body);
  });
  const taking = (name: string) => ({
    client: clientOf(base),
    url: `${base}/${name}.m3u8`,
    dir: join(emptyFolder(), "hls"),
    maxBytes: 100,
    binaries: async () => expect.fail("no audio of its own"),
    onBytes: () => {},
  });
  expect(readFileSync(await takeHls(taking("m")), "utf8")).toBe("abcdef");
  await expect(takeHls(taking("locked"))).rejects.toThrow(/encrypted/);
  await expect(takeHls(taking("none"))).rejects.toThrow(/404/);
});

test("a part of another version of a file is not continued", async () => {
  const base = await listen((from, to) => {
    expect(from.headers["if-range"]).toBe('"old"');
    to.writeHead(200, { etag: '"new"', "content-length": 3 }).end("new");
  });
  const path = join(emptyFolder(), "file");
  writeFileSync(path, "old old old");
  writeFileSync(`${path}.json`, '{"version":"\\"old\\""}');
  const media = { kind: "remote", url: `${base}/x`, bytes: 3 } as const;
  const given = { client: clientOf(base), path, media, refresh: async () => null, maxBytes: 100, onBytes: () => {} };
  expect(await download(given)).toBe(3);
  expect(readFileSync(path, "utf8")).toBe("new");
});
