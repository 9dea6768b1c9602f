import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "vitest";
import { atEnd, newFolder, removeFolder } from "../support/folder.ts";
import type { Visit } from "./browser.ts";

/** A page of a customer's, on another site. */
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
/** Asks again and again from here: the page's policy lets nothing be evaluated there. */
export const until = (seen: Visit, expression: string) =>
  expect
    .poll(() => ask(seen, `return Boolean((() => { ${expression} })())`), {
      timeout: 60_000,
      interval: 50,
      message: expression,
    })
    .toBe(true);
/** 180 seconds of a moving picture, as the source of two renditions. */
export function makeLongClip(): Buffer {
  const folder = newFolder();
  const path = join(folder, "long.mp4");
  const picture = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=12:duration=180"];
  const encoders = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"];
  execFileSync("ffmpeg", ["-nostdin", "-v", "error", "-y", ...picture, ...encoders, path]);
  const bytes = readFileSync(path);
  removeFolder(folder);
  return bytes;
}
