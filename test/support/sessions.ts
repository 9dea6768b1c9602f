import { expect } from "vitest";
import type { TestApp } from "./app.ts";
import type { Answer, CallOptions } from "./client.ts";

/** A browser's session: the cookie that it got, and the CSRF token of the body. */
export type BrowserSession = { cookie: string; csrf: string; body: any };

export function sessionFrom(answer: Answer): BrowserSession {
  expect(answer.status, answer.text).toBe(201);
  const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
  return { cookie, csrf: answer.body.csrf_token, body: answer.body };
}

export const signIn = async (app: Pick<TestApp, "call">, body: unknown, headers: Record<string, string> = {}) =>
  sessionFrom(await app.call("POST", "/api/v1/session", { body, headers }));

/** Calls with the session's cookie and CSRF token, as the console does. */
export const withSession = (app: Pick<TestApp, "call">, { cookie, csrf }: BrowserSession) => {
  return (method: string, path: string, { headers, ...options }: CallOptions = {}): Promise<Answer> =>
    app.call(method, path, { ...options, headers: { cookie, "x-csrf-token": csrf, ...headers } });
};
