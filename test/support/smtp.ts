import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

export type ReceivedMail = { to: string[]; text: string };

/** A mail server on loopback, which keeps what it receives. `url` names it as the setting does. */
export async function startSmtp(options: SMTPServerOptions = {}, port = 0) {
  const mails: ReceivedMail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    logger: false,
    disabledCommands: ["STARTTLS"],
    closeTimeout: 100,
    onData(stream, session, done) {
      const parts: Buffer[] = [];
      stream.on("data", (part: Buffer) => parts.push(part));
      stream.on("end", () => {
        const to = session.envelope.rcptTo.map(({ address }) => address);
        mails.push({ to, text: Buffer.concat(parts).toString("utf8") });
        done();
      });
    },
    ...options,
  });
  // A client that leaves is no fault of the test.
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const { port: at } = server.server.address() as AddressInfo;
  return {
    mails,
    port: at,
    url: `smtp://127.0.0.1:${at}`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** The link in a mail, whose lines may be folded (RFC 2045, 6.7). */
export function linkIn({ text }: ReceivedMail): string {
  const body = text.replaceAll(/=\r\n/g, "").replaceAll("=3D", "=");
  return /https?:\/\/\S+/.exec(body)?.[0] ?? "";
}
