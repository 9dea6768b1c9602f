import { eq } from "drizzle-orm";
import type { Role } from "#model/enums.ts";
import { type Caller, SCOPES, type Session } from "#platform/http/caller.ts";
import { Reply, route } from "#platform/http/route.ts";
import { cookieOf } from "#platform/http/session.ts";
import { sessions } from "#storage/db/schema.ts";
import { begin, beginning } from "./begin.ts";
import { SessionBody, SetUp, SignIn } from "./schema.ts";
import { setUp } from "./setup.ts";
import { signIn, toSession } from "./sign-in.ts";

const path = "/api/v1/session";
const shared = { tag: "Sessions", credential: "session", errors: { 401: ["unauthorized"] } } as const;
type Called = { session: Session; tenantId: number | null; scopes: readonly string[]; role: Role | null };

/** The session with which a caller of these routes was authenticated. */
function sessionOf(caller: Caller): Called {
  if (caller.kind === "admin" && caller.session)
    return { session: caller.session, tenantId: null, scopes: SCOPES, role: null };
  if (caller.kind === "key" && caller.session) {
    const { session, tenantId, scopes, role = null } = caller;
    return { session, tenantId, scopes, role };
  }
  throw new Error("A route with the credential `session` has a caller without one.");
}

const subjectOf = (caller: Caller) =>
  caller.kind === "admin" ? "admin" : caller.kind === "key" && caller.keyId === null ? "user" : "api_key";

export const sessionRoutes = [
  route({
    ...beginning,
    path,
    operationId: "createSession",
    summary: "Sign in: begin a session in a cookie",
    body: SignIn,
    handle: (context) => begin(context, (client) => signIn(context.app, context.body, client)),
  }),
  route({
    ...beginning,
    path: "/api/v1/setup",
    operationId: "setUpServer",
    summary: "Create the first tenant and user with the one-time code of a new server, and sign in",
    body: SetUp,
    handle: (context) => begin(context, (client) => setUp(context.app, context.body, client)),
  }),
  route({
    ...shared,
    path,
    method: "GET",
    operationId: "getSession",
    summary: "Get the session of this request's cookie",
    responses: { 200: SessionBody },
    handle({ caller }) {
      const { session, ...rest } = sessionOf(caller);
      return toSession({ subject: subjectOf(caller), ...rest }, session);
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
