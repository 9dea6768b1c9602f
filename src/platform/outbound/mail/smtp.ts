import { abortAfter, UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";

export type Mail = { to: string; subject: string; text: string };

/** A mail that the server refused. `isFinal`: it would refuse it again. */
export class MailFailure extends Error {
  readonly isFinal: boolean;
  constructor(message: string, isFinal: boolean) {
    super(message);
    this.isFinal = isFinal;
  }
}

/** Without an answer of the mail server. */
const TIMEOUT_MS = 20_000;
/** For a mail in all: a server that answers slowly, or in single bytes, would hold the mails behind it. */
const TOTAL_MS = 60_000;

export const isMailConfigured = ({ smtp_url, smtp_from }: Config): boolean =>
  smtp_url !== undefined && smtp_from !== undefined;

/** Throws a UserError for one of the two settings without the other. */
export function checkMail({ smtp_url, smtp_from }: Config): void {
  if ((smtp_url === undefined) !== (smtp_from === undefined))
    throw new UserError("Mail needs both VODBOX_SMTP_URL and VODBOX_SMTP_FROM.", 2);
}

/** One line: a line break in a header would begin another header (CWE-93). */
const oneLine = (text: string) => text.replaceAll(/\p{C}+/gu, " ").trim();

/** Sends a mail. Resolves once the server has accepted it, for at most `totalMs`. Throws MailFailure. */
export async function sendMail(
  { smtp_url, smtp_from }: Pick<Config, "smtp_url" | "smtp_from">,
  { to, subject, text }: Mail,
  totalMs = TOTAL_MS,
): Promise<void> {
  // Loaded with the first mail.
  const { createTransport } = await import("nodemailer");
  const transport = createTransport({
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    url: smtp_url as string,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const signal = abortAfter(totalMs);
  try {
    await transport.sendMail({
      signal,
      from: oneLine(smtp_from as string),
      to: { name: "", address: oneLine(to) },
      subject: oneLine(subject),
      text,
      // RFC 3834, 5: no automatic replies.
      headers: { "Auto-Submitted": "auto-generated" },
    });
  } catch (error) {
    if (signal.aborted)
      throw new MailFailure(`The mail server did not take the mail within ${totalMs / 1000} s.`, false);
    const { responseCode = 0, command = "", message } = error as Error & { responseCode?: number; command?: string };
    // A refused recipient or message; a refused sign-in is corrected by the operator.
    throw new MailFailure(message, responseCode >= 500 && !command.startsWith("AUTH"));
  } finally {
    transport.close();
  }
}
