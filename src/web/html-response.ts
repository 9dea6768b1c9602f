import { randomBytes } from "node:crypto";
import { FastResponse } from "srvx";
import type { Markup } from "./html.ts";

/** A Content-Security-Policy by directive. */
export type Policy = Record<string, string>;

/** For the scripts and styles of one response. */
export const newNonce = () => randomBytes(16).toString("base64");

/** What every page forbids, and where its own scripts and styles come from. */
export const pagePolicy = (source: string): Policy => ({
  "default-src": "'none'",
  "script-src": source,
  "style-src": source,
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
});

/** The value of the header. */
export const policyText = (policy: Policy): string =>
  Object.entries(policy)
    .map(([directive, value]) => `${directive} ${value}`)
    .join("; ");

type Page = {
  nonce: string;
  /** In addition to, or instead of, what is common to all pages. */
  policy: Policy;
  status?: number;
  headers?: Record<string, string>;
};

export const htmlResponse = (body: Markup, { nonce, policy, status = 200, headers }: Page): Response =>
  new FastResponse(body.text, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      // By nonce: no other file of this server is executed.
      "content-security-policy": policyText({ ...pagePolicy(`'nonce-${nonce}'`), ...policy }),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      // The URL may contain a token, which must not be sent to other sites as referrer.
      "referrer-policy": "no-referrer",
      ...headers,
    },
  });
