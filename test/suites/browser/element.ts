import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "vitest";
import type { Visit } from "#test/support/browser/browser.ts";
import { atEnd, newFolder, removeFolder } from "#test/support/folder.ts";

/** A customer's page, on another site. */
export async function customersPage(body: string): Promise<string> {
  const host = createServer((request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(
      request.url === "/"
        ? `<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1>${body}</main></html>`
        : "",
    );
  });
  await new Promise<void>((done) => host.listen(0, "127.0.0.1", done));
  atEnd(() => host.closeAllConnections());
  atEnd(() => host.close());
  return `http://localhost:${(host.address() as AddressInfo).port}`;
}
/** Runs in the page, with the player as `player`. */
export const ask = <T>({ page }: Visit, expression: string): Promise<T> =>
  page.evaluate(`(() => { const player = document.querySelector("svc-player"); ${expression} })()`) as Promise<T>;
/** Polls from here: the page's policy does not allow evaluation there. */
export const until = (seen: Visit, expression: string) =>
  expect
    .poll(() => ask(seen, `return Boolean((() => { ${expression} })())`), {
      timeout: 60_000,
      interval: 50,
      message: expression,
    })
    .toBe(true);
/** Sixteen seconds, all of which the player buffers; a low tone and a high one. */
export function inTwoLanguages(): Buffer {
  const folder = newFolder();
  const path = join(folder, "two.mkv");
  const sources = ["testsrc2=size=320x180:rate=10:duration=16", "sine=220:duration=16", "sine=880:duration=16"];
  const encoders = "-map 0 -map 1 -map 2 -c:v libx264 -preset ultrafast -c:a aac".split(" ");
  const languages = "-metadata:s:a:0 language=eng -metadata:s:a:1 language=deu".split(" ");
  const inputs = sources.flatMap((source) => ["-f", "lavfi", "-i", source]);
  execFileSync("ffmpeg", ["-nostdin", "-v", "error", "-y", ...inputs, ...encoders, ...languages, path]);
  const bytes = readFileSync(path);
  removeFolder(folder);
  return bytes;
}
