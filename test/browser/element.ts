import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";
import { atEnd } from "../support/folder.ts";
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
