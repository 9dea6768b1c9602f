import { dictionary } from "../../texts/dictionary.ts";

export const texts = dictionary(
  {
    signInHint: "With a token, or as a user with a password.",
    tokenOrKey: "Admin token or API key",
    or: "or",
    invitation: "You are invited",
    invitedTo: "You become a user of {tenant} and sign in as {email}.",
    join: "Create account",
    yourName: "Your name",
    setUp: "Set up vodbox",
    setUpHint: "Create your tenant and the first user. Then upload a video.",
    setUpUsed: "This address works once, for an hour. Restart the server for a new one, or sign in.",
    sessionEnded: "Your session has ended. Sign in again.",
  },
  {
    signInHint: "Mit einem Token oder als Benutzer mit Passwort.",
    tokenOrKey: "Admin-Token oder API-Schlüssel",
    or: "oder",
    invitation: "Sie sind eingeladen",
    invitedTo: "Sie werden Benutzer von {tenant} und melden sich als {email} an.",
    join: "Konto anlegen",
    yourName: "Ihr Name",
    setUp: "vodbox einrichten",
    setUpHint: "Legen Sie den Mandanten und den ersten Benutzer an. Danach laden Sie ein Video hoch.",
    setUpUsed:
      "Diese Adresse gilt einmal und eine Stunde lang. Starten Sie den Server neu, um eine weitere zu erhalten, oder melden Sie sich an.",
    sessionEnded: "Ihre Sitzung ist beendet. Melden Sie sich erneut an.",
  },
);
