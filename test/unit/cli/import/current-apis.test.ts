import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { attach } from "#cli/import/attach.ts";
import { bunny } from "#cli/import/providers/bunny.ts";
import { peertube } from "#cli/import/providers/peertube.ts";
import { plainItem } from "#cli/import/source.ts";
import { atEnd } from "#test/support/folder.ts";

/** A server that answers paths with JSON, or with the text of a file. */
async function api(answers: Record<string, object | string>): Promise<string> {
  const server = createServer(({ url = "" }, response) => {
    const answer = answers[url.split("?", 1)[0] as string];
    if (answer === undefined) return void response.writeHead(404).end("{}");
    response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const listed = { id: "u", title: "t", seconds: 1, bytes: null, data: null };

test("the largest thumbnail of PeerTube 8 is taken", async () => {
  const base = await api({
    "/api/v1/oauth-clients/local": { client_id: "a", client_secret: "b" },
    "/api/v1/users/token": { access_token: "t" },
    "/api/v1/videos/u": {
      name: null,
      files: [{ fileDownloadUrl: "/f.mp4", size: 1 }],
      thumbnails: [
        { width: 280, fileUrl: "/small.jpg" },
        { width: 850, fileUrl: "/large.jpg" },
      ],
    },
    "/large.jpg": "large",
    "/small.jpg": "small",
  });
  const env = { PEERTUBE_URL: base, PEERTUBE_USERNAME: "root", PEERTUBE_PASSWORD: "x" };
  const source = await peertube.open({ from: undefined, env, apiUrl: undefined });
  const item = await source.load(listed, { isDryRun: false });
  expect(item.title).toBe("u");
  expect(Buffer.from((await item.thumbnail?.()) ?? []).toString()).toBe("large");
});

test("a video of Bunny that is encoded when it is watched is imported", async () => {
  const base = await api({ "/library/5/videos/u": { guid: "u", title: null, status: 8 }, "/u/original": "bytes" });
  const env = { BUNNY_LIBRARY_ID: "5", BUNNY_API_KEY: "k", BUNNY_CDN_HOSTNAME: base };
  const source = await bunny.open({ from: undefined, env, apiUrl: base });
  const item = await source.load(listed, { isDryRun: false });
  expect(item).toMatchObject({ title: "u", media: { kind: "remote", url: `${base}/u/original`, bytes: 5 } });
});

test("languages with underscores are BCP 47 tags", async () => {
  const sent: string[] = [];
  const call = async (method: string, _: string, body?: FormData) => {
    if (method === "POST") sent.push(body?.get("language") as string);
    return [];
  };
  const patience = { until: (work: () => unknown) => work() };
  const caption = (language: string) => ({ language, label: "", read: async () => Buffer.from("WEBVTT\n") });
  const item = plainItem({
    title: "t",
    filename: "t.mp4",
    media: { kind: "local", path: "/x", bytes: 1 },
    captions: [caption("pt_BR"), caption("zh_Hant_TW"), caption("none of these")],
  });
  const { captions, problems } = await attach({ call, patience } as never, 1, item);
  expect([sent, captions]).toEqual([["pt-BR", "zh-Hant-TW"], 2]);
  expect(problems).toEqual([expect.stringMatching(/^captions none of these: .*BCP 47/)]);
});
