import { dictionary } from "#web/console/texts/dictionary.ts";

export const texts = dictionary(
  {
    actor: "Actor",
    action: "Action",
    noActivity: "Nothing was changed.",
    time: "Time",
    who: "Who",
    what: "What",
    target: "Target",
    fields: "Fields",
    address: "Address",
  },
  {
    actor: "Handelnder",
    action: "Handlung",
    noActivity: "Nichts wurde geändert.",
    time: "Zeit",
    who: "Wer",
    what: "Was",
    target: "Ziel",
    fields: "Felder",
    address: "Adresse",
  },
);
