import { type Context, Reply } from "#platform/http/route.ts";
import { cookieOf } from "#platform/http/session.ts";
import { attempt } from "../devices/attempts.ts";
import { SessionBody } from "./schema.ts";
import { type NewSession, type SessionClient, toNewSession } from "./sign-in.ts";

/** What routes that begin a session have in common. */
export const beginning = {
  tag: "Sessions",
  credential: "none",
  method: "POST",
  audited: true,
  beginsSession: true,
  responses: { 201: SessionBody },
  errors: { 401: ["unauthorized", "totp_required"], 403: ["cross_site"], 429: ["rate_limited"], 503: ["busy"] },
} as const;

const USER_AGENT_LENGTH = 200;

/** Begins a session by `work`, an attempt of the client's address, and sets its cookie. */
export async function begin(
  { app, headers, address }: Pick<Context, "app" | "headers" | "address">,
  work: (client: SessionClient) => Promise<NewSession>,
): Promise<Reply> {
  const client = { address, userAgent: headers.get("user-agent")?.slice(0, USER_AGENT_LENGTH) ?? null };
  const session = await attempt(app, address, () => work(client));
  const cookie = cookieOf(session.token, { headers, baseUrl: app.baseUrl() });
  return new Reply(201, toNewSession(session), { "set-cookie": cookie });
}
