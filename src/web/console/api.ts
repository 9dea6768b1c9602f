import { Vodbox } from "#clients/typescript/vodbox.ts";
import { BASE } from "./base.ts";

let csrfToken: string | null = null;
let onSessionEnd = () => {};

/** The token that each change of this session contains; null without a session. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

/** Called when a request of a session that was valid is answered with 401. */
export function whenSessionEnds(work: () => void): void {
  onSessionEnd = work;
}

async function fetchInSession(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request);
  if (response.status === 401 && csrfToken !== null) onSessionEnd();
  return response;
}

/** The API with the session's cookie: one method for each operation of the OpenAPI document. */
export const vodbox = new Vodbox({
  baseUrl: BASE,
  headers: (): Record<string, string> => (csrfToken === null ? {} : { "X-CSRF-Token": csrfToken }),
  fetch: fetchInSession,
});
