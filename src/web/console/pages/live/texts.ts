import { dictionary } from "../../texts/dictionary.ts";

export const texts = dictionary(
  {
    newChannel: "New channel",
    noChannels: "No channels yet. A channel lets one encoder publish through your live gateway.",
    channel: "Channel",
    channelHint: "2 to 63 characters of a-z 0-9 _ -",
    path: "Path at the gateway",
    publisher: "User name of the publisher",
    publisherHint: "Empty: any user with the stream key",
    keyShownOnce: "Copy the stream key now. It is not shown again.",
    rotate: "New stream key",
    rotateQuestion: "Make a new stream key? The encoder cannot publish with the old one any more.",
    deleteQuestion: "Revoke this channel? It can no longer be published or watched.",
  },
  {
    newChannel: "Neuer Kanal",
    noChannels: "Noch keine Kanäle. Über einen Kanal sendet ein Encoder durch Ihr Live-Gateway.",
    channel: "Kanal",
    channelHint: "2 bis 63 Zeichen aus a-z 0-9 _ -",
    path: "Pfad am Gateway",
    publisher: "Benutzername des Senders",
    publisherHint: "Leer: jeder Benutzer mit dem Streamschlüssel",
    keyShownOnce: "Kopieren Sie den Streamschlüssel jetzt. Er wird nicht noch einmal angezeigt.",
    rotate: "Neuer Streamschlüssel",
    rotateQuestion: "Einen neuen Streamschlüssel erzeugen? Mit dem alten kann der Encoder nicht mehr senden.",
    deleteQuestion: "Diesen Kanal widerrufen? Niemand kann dann mehr senden oder zusehen.",
  },
);
