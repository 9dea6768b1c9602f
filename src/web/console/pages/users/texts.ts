import { dictionary } from "#web/console/texts/dictionary.ts";

export const texts = dictionary(
  {
    invite: "Invite",
    invitations: "Invitations",
    noInvitations: "No open invitations.",
    invitationHint: "Send this link to the person. It works once, until {time}, and is not shown again.",
    revoke: "Revoke",
    revokeInvitation: "Revoke the invitation of {email}? The link stops working at once.",
    expires: "Expires",
    noUsers: "No users yet.",
    role: "Role",
    editUser: "Edit",
    deleteUser: "Delete {email}? The person can no longer sign in, and apps of this person lose access.",
    personName: "Name",
    roleHint: "Admin: everything. Editor: all but users, settings, keys, webhooks and billing. Viewer: sees and plays.",
  },
  {
    invite: "Einladen",
    invitations: "Einladungen",
    noInvitations: "Keine offenen Einladungen.",
    invitationHint:
      "Schicken Sie diesen Link der Person. Er gilt einmal, bis {time}, und wird nicht noch einmal angezeigt.",
    revoke: "Zurückziehen",
    revokeInvitation: "Die Einladung von {email} zurückziehen? Der Link gilt sofort nicht mehr.",
    expires: "Gilt bis",
    noUsers: "Noch keine Benutzer.",
    role: "Rolle",
    editUser: "Bearbeiten",
    deleteUser: "{email} löschen? Die Person kann sich nicht mehr anmelden, und ihre Apps verlieren den Zugang.",
    personName: "Name",
    roleHint:
      "Admin: alles. Redaktion: alles außer Benutzern, Einstellungen, Schlüsseln, Webhooks und Abrechnung. Zuschauer: sehen und abspielen.",
  },
);
