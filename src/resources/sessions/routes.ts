import { eq } from "drizzle-orm";
import { sessions } from "../../../storage/db/schema.ts";
import { type Caller, SCOPES, type Session } from "../../http/caller.ts";
import { type Context, Reply, route } from "../../http/route.ts";
import { cookieOf } from "../../http/session.ts";
import { attempt } from "./attempts.ts";
import { SessionBody, SetUp, SignIn } from "./schema.ts";
import { setUp } from "./setup.ts";
import { type NewSession, signIn, toNewSession, toSession } from "./sign-in.ts";

const path = "/api/v1/session";
const shared = { tag: "Sessions", credential: "session", errors: { 401: ["unauthorized"] } } as const;
const begins = {
  ...shared,
  credential: "none",
  method: "POST",
  audited: true,
  beginsSession: true,
  responses: { 201: SessionBody },
  errors: { 401: ["unauthorized"], 403: ["cross_site"], 429: ["rate_limited"], 503: ["busy"] },
} as const;

async function begin(context: Pick<Context, "app" | "headers" | "address">, work: () => Promise<NewSession>) {
  const { app, headers, address } = context;
  const session = await attempt(app, address, work);
  const cookie = cookieOf(session.token, { headers, baseUrl: app.baseUrl() });
  return new Reply(201, toNewSession(session), { "set-cookie": cookie });
}

/** The session with which a caller of these routes was authenticated. */
function sessionOf(caller: Caller): { session: Session; tenantId: number | null; scopes: readonly string[] } {
  if (caller.kind === "admin" && caller.session) return { session: caller.session, tenantId: null, scopes: SCOPES };
  if (caller.kind === "key" && caller.session)
    return { session: caller.session, tenantId: caller.tenantId, scopes: caller.scopes };
  throw new Error("A route with the credential `session` has a caller without one.");
}

const subjectOf = (caller: Caller) =>
  caller.kind === "admin" ? "admin" : caller.kind === "key" && caller.keyId === null ? "user" : "api_key";

export const sessionRoutes = [
  route({
    ...begins,
    path,
    operationId: "createSession",
    summary: "Sign in: begin a session in a cookie",
    body: SignIn,
    handle: (context) => begin(context, () => signIn(context.app, context.body)),
  }),
  route({
    ...begins,
    path: "/api/v1/setup",
    operationId: "setUpServer",
    summary: "Create the first tenant and user with the one-time code of a new server, and sign in",
    body: SetUp,
    handle: (context) => begin(context, () => setUp(context.app, context.body)),
  }),
  route({
    ...shared,
    path,
    method: "GET",
    operationId: "getSession",
    summary: "Get the session of this request's cookie",
    responses: { 200: SessionBody },
    handle({ caller }) {
      const { session, tenantId, scopes } = sessionOf(caller);
      return toSession({ subject: subjectOf(caller), tenantId }, scopes, session);
    },
  }),
  route({
    ...shared,
    path,
    method: "DELETE",
    audited: true,
    operationId: "deleteSession",
    summary: "Sign out: end the session of this request's cookie",
    responses: { 204: null },
    errors: { ...shared.errors, 403: ["cross_site", "csrf_token_required"] },
    async handle({ app, caller, headers }) {
      const { id } = sessionOf(caller).session;
      await app.write((tx) => tx.delete(sessions).where(eq(sessions.id, id)));
      return new Reply(204, undefined, { "set-cookie": cookieOf("", { headers, baseUrl: app.baseUrl() }) });
    },
  }),
];
