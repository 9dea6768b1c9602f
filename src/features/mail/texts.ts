import type { Content } from "./outbox.ts";

type Language = "en" | "de";
const languageOf = (language: string | null): Language => (language === "de" ? "de" : "en");

/** The mail of an invitation, in the language of the person who invites. */
export function invitationMail(language: string | null, { tenant, url }: { tenant: string; url: string }): Content {
  if (languageOf(language) === "de")
    return {
      subject: `Einladung zu ${tenant}`,
      text: `Sie sind eingeladen, ${tenant} auf vodbox beizutreten.\n\n${url}\n\nDer Link gilt einmal, 72 Stunden lang.\n`,
    };
  return {
    subject: `Invitation to ${tenant}`,
    text: `You are invited to join ${tenant} on vodbox.\n\n${url}\n\nThe link works once, for 72 hours.\n`,
  };
}

/** The mail of a password reset, in the language of the user. */
export function resetMail(language: string | null, url: string): Content {
  if (languageOf(language) === "de")
    return {
      subject: "Neues Passwort",
      text: `Mit diesem Link legen Sie ein neues Passwort fest:\n\n${url}\n\nEr gilt einmal, eine Stunde lang. Wenn Sie ihn nicht angefordert haben, ist nichts zu tun.\n`,
    };
  return {
    subject: "Reset your password",
    text: `Set a new password with this link:\n\n${url}\n\nIt works once, for an hour. If you did not request it, you need to do nothing.\n`,
  };
}
