import { HttpError } from "#lib/base";
import { Reply } from "#platform/http/route.ts";

/** The message of a schema for what Mux has and vodbox does not. */
export const NOT_SUPPORTED = "is not supported by vodbox";

/** 422 for a field or value that Mux has and vodbox has no counterpart for. */
export const notSupported = (field: string): never => {
  throw new HttpError(422, "not_supported", `${field}: ${NOT_SUPPORTED}`);
};

/** 400 for a value that Mux refuses too. */
export const invalidParameter = (field: string, message: string): never => {
  throw new HttpError(400, "invalid_parameters", `${field}: ${message}`);
};

/** Mux's names of our statuses. */
const TYPES: Record<number, string> = {
  400: "invalid_parameters",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  429: "too_many_requests",
};
/** These have statuses of their own at Mux; every other refusal of a value is 400 there. */
const KEPT = [400, 401, 403, 404, 405, 413, 415, 429];

/** An error in Mux's shape: `{error: {type, messages}}`. */
export function muxError({ status, code, message, extra }: HttpError): Reply {
  const faults = Object.entries(extra.details ?? {}).flatMap(([field, messages]) =>
    messages.map((one) => ({ field, message: one })),
  );
  const missing = faults.filter(({ message: one }) => one === NOT_SUPPORTED);
  const isNotSupported = code === "not_supported" || missing.length > 0;
  const listed = missing.length > 0 ? missing : faults;
  const messages = listed.length > 0 ? listed.map(({ field, message: one }) => `${field}: ${one}`) : [message];
  const headers = { ...extra.headers, ...(status === 401 && { "www-authenticate": 'Basic realm="vodbox"' }) };
  if (isNotSupported) return new Reply(422, { error: { type: "not_supported", messages } }, headers);
  // The client of Mux repeats requests that are answered with 409.
  const shown = status >= 500 || KEPT.includes(status) ? status : 400;
  return new Reply(shown, { error: { type: TYPES[shown] ?? code, messages } }, headers);
}
