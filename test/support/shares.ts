import { expect } from "vitest";
import type { TestApp } from "./app.ts";
import type { Answer } from "./client.ts";
import { typedClient } from "./typed-client.ts";

type Calls = Pick<TestApp, "call">;

/** A share of an asset. */
export async function shareOf(app: Calls, key: string, assetId: number, fields: Record<string, unknown> = {}) {
  const made = await typedClient(app.call)(key).createShare(assetId, fields);
  expect(made.status, made.text).toBe(201);
  return made.body;
}

export type Viewer = {
  /** Loads a page of a share with the cookie, and keeps the one that it sets. */
  open(url: string): Promise<Answer>;
  /** The token of the page that was opened last. */
  token(): string;
  /** Sends a request for a file of an asset with that token. */
  media(asset: { external_id: string }, file?: string): Promise<Answer>;
  /** Sends a password as the page's script would. */
  unlock(url: string, password: unknown): Promise<Answer>;
  /** Submits the form of a page. */
  submit(url: string, password: string): Promise<Answer>;
  cookie: string;
};

/** A browser without scripts: one cookie, which all pages of a share understand. */
export function viewer(app: Calls, cookie = ""): Viewer {
  let html = "";
  const keep = (answer: Answer) => {
    const [set] = answer.headers.getSetCookie();
    if (set) self.cookie = set.split(";")[0] ?? "";
    html = answer.text;
    return answer;
  };
  const headers = (): Record<string, string> => (self.cookie === "" ? {} : { cookie: self.cookie });
  const self: Viewer = {
    cookie,
    open: async (url) => keep(await app.call("GET", url, { headers: headers() })),
    token: () => /<svc-player [^>]*\btoken="([^"]+)"/.exec(html)?.[1] ?? "",
    media: ({ external_id }, file = "master.m3u8") =>
      app.call("GET", `/media/${external_id}/${file}?token=${self.token()}`),
    unlock: async (url, password) => keep(await app.call("POST", url, { body: { password }, headers: headers() })),
    submit: async (url, password) =>
      keep(
        await app.call("POST", url, {
          raw: new URLSearchParams({ password }),
          headers: { ...headers(), "content-type": "application/x-www-form-urlencoded" },
        }),
      ),
  };
  return self;
}
