import { UserError } from "#lib/base";
import { ProviderRefused, providerClient } from "../client.ts";
import { amountOf, record, text } from "../json.ts";
import { ItemError } from "../source.ts";

/** Signs in as a user (OAuth 2, password grant), again when the token expires. */
export function session(base: string, env: Record<string, string>): () => Promise<Record<string, string>> {
  const client = providerClient({ title: "PeerTube", base, credentials: () => ({}) });
  let current: Promise<{ headers: Record<string, string>; until: number }> | null = null;
  async function signIn() {
    const { client_id, client_secret } = record(await client.json("/api/v1/oauth-clients/local"));
    const form = {
      client_id: text(client_id) ?? "",
      client_secret: text(client_secret) ?? "",
      grant_type: "password",
      response_type: "code",
      username: env.PEERTUBE_USERNAME as string,
      password: env.PEERTUBE_PASSWORD as string,
    };
    const answer = record(
      await client.json("/api/v1/users/token", { method: "POST", form }).catch((error) => {
        if (!(error instanceof ProviderRefused)) throw error;
        throw new UserError("PeerTube refuses PEERTUBE_USERNAME and PEERTUBE_PASSWORD.");
      }),
    );
    const token = text(answer.access_token);
    if (token === null) throw new ItemError("PeerTube issued no token");
    const seconds = amountOf(answer.expires_in) ?? 3600;
    return { headers: { authorization: `Bearer ${token}` }, until: Date.now() + Math.max(60, seconds - 300) * 1000 };
  }
  return async () => {
    const signedIn = await current?.catch(() => null);
    if (!signedIn || signedIn.until < Date.now()) current = signIn();
    return (await (current as ReturnType<typeof signIn>)).headers;
  };
}
