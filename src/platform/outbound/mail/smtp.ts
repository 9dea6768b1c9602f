import { UserError } from "#lib/base";
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

const TIMEOUT_MS = 20_000;

export const isMailConfigured = ({ smtp_url, smtp_from }: Config): boolean =>
  smtp_url !== undefined && smtp_from !== undefined;

/** Throws a UserError for one of the two settings without the other. */
export function checkMail({ smtp_url, smtp_from }: Config): void {
  if ((smtp_url === undefined) !== (smtp_from === undefined))
    throw new UserError("Mail needs both VODBOX_SMTP_URL and VODBOX_SMTP_FROM.", 2);
}

/** One line: a line break in a header would begin another header (CWE-93). */
const oneLine = (text: string) => text.replaceAll(/\p{C}+/gu, " ").trim();

/** Sends a mail. Resolves once the server has accepted it. Throws MailFailure. */
export async function sendMail({ smtp_url, smtp_from }: Config, { to, subject, text }: Mail): Promise<void> {
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
  try {
    await transport.sendMail({
      from: oneLine(smtp_from as string),
      to: { name: "", address: oneLine(to) },
      subject: oneLine(subject),
      text,
      // RFC 3834, 5: no automatic replies.
      headers: { "Auto-Submitted": "auto-generated" },
    });
  } catch (error) {
    const { responseCode = 0, command = "", message } = error as Error & { responseCode?: number; command?: string };
    // A refused recipient or message; a refused sign-in is corrected by the operator.
    throw new MailFailure(message, responseCode >= 500 && !command.startsWith("AUTH"));
  } finally {
    transport.close();
  }
}
