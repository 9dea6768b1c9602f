import { eq } from "drizzle-orm";
import * as v from "valibot";
import { HttpError } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { users } from "#storage/db/schema.ts";
import { attemptCode } from "../credentials/devices/attempts.ts";
import { confirmSecret, newSecret, removeSecret } from "../credentials/devices/second-factor.ts";
import { me } from "./me.ts";
import { TotpCode } from "./schema.ts";

const path = "/api/v1/me/totp";
const shared = { tag: "Account", credential: "session", audited: true } as const;
const CHANGE = ["cross_site", "csrf_token_required"];

/** One's own second factor. */
export const totpRoutes = [
  route({
    ...shared,
    method: "POST",
    path,
    operationId: "createMyTotp",
    summary: "Request a secret for an authenticator app; it is in effect once it is confirmed",
    responses: {
      200: v.pipe(
        v.object({
          secret: v.pipe(v.string(), v.description("In base 32; it is shown only here")),
          uri: v.pipe(v.string(), v.description("The secret as a URI for authenticator apps (otpauth:)")),
          qr_svg: v.pipe(v.string(), v.description("The URI as a QR code")),
        }),
        v.title("NewTotp"),
      ),
    },
    errors: { 403: CHANGE, 404: ["not_found"], 409: ["totp_enabled"] },
    async handle({ app, caller }) {
      const { user } = await me(app.db, caller);
      const { sealed, ...shown } = await newSecret(app, user);
      await app.write(async (tx) => {
        const now = await me(tx, caller);
        if (now.user.totpSecret !== null)
          throw new HttpError(409, "totp_enabled", "The second factor is on; switch it off with a code first.");
        await tx.update(users).set({ totpPending: sealed }).where(eq(users.id, now.user.id));
      });
      return shown;
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${path}/confirm`,
    operationId: "confirmMyTotp",
    summary: "Switch the second factor on with a code of the authenticator app",
    body: TotpCode,
    responses: {
      200: v.pipe(
        v.object({ recovery_codes: v.pipe(v.array(v.string()), v.description("Each works once; shown only here")) }),
        v.title("RecoveryCodes"),
      ),
    },
    errors: {
      403: [...CHANGE, "wrong_code"],
      404: ["not_found"],
      409: ["totp_not_started"],
      429: ["rate_limited"],
      503: ["busy"],
    },
    async handle({ app, caller, body }) {
      const { user } = await me(app.db, caller);
      const confirm = () => app.write(async (tx) => confirmSecret(tx, app, (await me(tx, caller)).user, body.code));
      return { recovery_codes: await attemptCode(app, user.emailAddress, confirm) };
    },
  }),
  route({
    ...shared,
    method: "DELETE",
    path,
    operationId: "deleteMyTotp",
    summary: "Switch the second factor off, with a code or a recovery code",
    body: TotpCode,
    responses: { 204: null },
    errors: {
      403: [...CHANGE, "wrong_code"],
      404: ["not_found"],
      409: ["totp_off"],
      429: ["rate_limited"],
      503: ["busy"],
    },
    async handle({ app, caller, body }) {
      const { user } = await me(app.db, caller);
      await attemptCode(app, user.emailAddress, () =>
        app.write(async (tx) => removeSecret(tx, app, (await me(tx, caller)).user, body.code)),
      );
    },
  }),
];
