import { expect } from "vitest";
import type { Answer } from "./client.ts";

const LEAKS = /undefined|\[object|node_modules|SQLITE|\n/;

/** The shape of every error: the code for clients, the message for people, and the request id for support. */
export function expectError(answer: Answer, status: number, code: string, about = ""): void {
  const { error, code: found, request_id, details = {}, required_scopes: _, ...others } = answer.body ?? {};
  const messages = Object.values(details).flat();
  expect
    .soft(
      {
        status: answer.status,
        code: found,
        hasMessage: typeof error === "string" && error.trim() !== "" && !LEAKS.test(error),
        hasRequestId: /^req_/.test(request_id) && request_id === answer.headers.get("x-request-id"),
        messagesAreWords: messages.every((message) => typeof message === "string" && !LEAKS.test(message)),
        others,
      },
      `${about} ${answer.text.slice(0, 300)}`,
    )
    .toEqual({ status, code, hasMessage: true, hasRequestId: true, messagesAreWords: true, others: {} });
}
