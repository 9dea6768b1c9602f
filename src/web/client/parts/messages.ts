import { De } from "media-chrome/dist/lang/de.js";
import { En, type TranslateDictionary } from "media-chrome/dist/lang/en.js";
import { Es } from "media-chrome/dist/lang/es.js";
import { Fr } from "media-chrome/dist/lang/fr.js";
import { Pt } from "media-chrome/dist/lang/pt.js";
import { addTranslation, setLanguage, t } from "media-chrome/dist/utils/i18n.js";
import type { LiveNotice } from "./live-state.ts";
import type { ErrorCode } from "./player-data.ts";

type MessageKey = ErrorCode | LiveNotice | "try_again" | "viewers" | "replay" | "Chapters" | "download";
type Dictionary = Partial<Record<MessageKey | keyof TranslateDictionary, string>>;

const ENGLISH: Record<MessageKey, string> = {
  asset_not_ready: "This video is not ready yet. It starts automatically when it is.",
  asset_errored: "This video could not be processed.",
  playback_token_required: "This video is private. It needs a playback token.",
  playback_token_expired: "This link has expired. Reload the page or request a new link.",
  playback_token_invalid: "This link is not valid for this video. Request a new link.",
  not_found: "This video does not exist.",
  network: "The video cannot be loaded right now. Check your connection.",
  media: "This browser cannot play the video.",
  live_waiting: "The stream has not started yet. It starts here automatically.",
  live_ended: "The stream has ended.",
  viewers: "{count} watching",
  try_again: "Try again",
  replay: "Watch again",
  Chapters: "Chapters",
  download: "Download",
};
const OTHERS: Record<string, Record<MessageKey, string>> = {
  de: {
    asset_not_ready: "Dieses Video ist noch nicht fertig. Es beginnt hier, sobald es so weit ist.",
    asset_errored: "Dieses Video konnte nicht verarbeitet werden.",
    playback_token_required: "Dieses Video ist privat. Es braucht ein Wiedergabe-Token.",
    playback_token_expired: "Dieser Link ist abgelaufen. Laden Sie die Seite neu, oder bitten Sie um einen neuen.",
    playback_token_invalid: "Dieser Link gilt nicht für dieses Video. Bitten Sie um einen neuen.",
    not_found: "Dieses Video gibt es nicht.",
    network: "Das Video ist gerade nicht erreichbar. Prüfen Sie die Verbindung.",
    media: "Dieser Browser kann das Video nicht abspielen.",
    live_waiting: "Der Stream hat noch nicht begonnen. Er beginnt hier von selbst.",
    live_ended: "Der Stream ist beendet.",
    viewers: "Zuschauer: {count}",
    try_again: "Noch einmal versuchen",
    replay: "Noch einmal ansehen",
    Chapters: "Kapitel",
    download: "Herunterladen",
  },
  es: {
    asset_not_ready: "Este vídeo aún no está listo. Empezará aquí en cuanto lo esté.",
    asset_errored: "No se pudo procesar este vídeo.",
    playback_token_required: "Este vídeo es privado. Necesita un token de reproducción.",
    playback_token_expired: "Este enlace ha caducado. Recargue la página o pida uno nuevo.",
    playback_token_invalid: "Este enlace no vale para este vídeo. Pida uno nuevo.",
    not_found: "No existe ese vídeo.",
    network: "No se puede acceder al vídeo ahora. Compruebe la conexión.",
    media: "Este navegador no puede reproducir el vídeo.",
    live_waiting: "La emisión aún no ha comenzado. Empezará aquí automáticamente.",
    live_ended: "La emisión ha terminado.",
    viewers: "Espectadores: {count}",
    try_again: "Reintentar",
    replay: "Ver de nuevo",
    Chapters: "Capítulos",
    download: "Descargar",
  },
  fr: {
    asset_not_ready: "Cette vidéo n’est pas encore prête. Elle commencera ici dès qu’elle le sera.",
    asset_errored: "Cette vidéo n’a pas pu être traitée.",
    playback_token_required: "Cette vidéo est privée. Il faut un jeton de lecture.",
    playback_token_expired: "Ce lien a expiré. Rechargez la page ou demandez-en un nouveau.",
    playback_token_invalid: "Ce lien n’est pas valable pour cette vidéo. Demandez-en un nouveau.",
    not_found: "Cette vidéo n’existe pas.",
    network: "La vidéo est injoignable pour le moment. Vérifiez la connexion.",
    media: "Ce navigateur ne peut pas lire la vidéo.",
    live_waiting: "Le direct n’a pas encore commencé. Il commencera ici automatiquement.",
    live_ended: "Le direct est terminé.",
    viewers: "Spectateurs : {count}",
    try_again: "Réessayer",
    replay: "Revoir",
    Chapters: "Chapitres",
    download: "Télécharger",
  },
  pt: {
    asset_not_ready: "Este vídeo ainda não está pronto. Começa aqui assim que estiver.",
    asset_errored: "Não foi possível processar este vídeo.",
    playback_token_required: "Este vídeo é privado. Precisa de um token de reprodução.",
    playback_token_expired: "Este link expirou. Recarregue a página ou peça um novo.",
    playback_token_invalid: "Este link não é válido para este vídeo. Peça um novo.",
    not_found: "Não existe esse vídeo.",
    network: "O vídeo não está acessível agora. Verifique a ligação.",
    media: "Este navegador não consegue reproduzir o vídeo.",
    live_waiting: "A transmissão ainda não começou. Começa aqui automaticamente.",
    live_ended: "A transmissão terminou.",
    viewers: "Espectadores: {count}",
    try_again: "Tentar de novo",
    replay: "Ver de novo",
    Chapters: "Capítulos",
    download: "Transferir",
  },
};

const known: Record<string, Dictionary> = {
  en: { ...En, ...ENGLISH },
  de: { ...De, ...OTHERS.de },
  es: { ...Es, ...OTHERS.es },
  fr: { ...Fr, ...OTHERS.fr },
  pt: { ...Pt, ...OTHERS.pt },
};
const RATE = "Playback rate {playbackRate}";
for (const [language, dictionary] of Object.entries(known)) {
  // The accessible name contains the button's text (WCAG 2.2, 2.5.3): "1.5x".
  addTranslation(language, Object.assign(dictionary, { [RATE]: `${dictionary[RATE]}x` }));
}

/** Sets another language, or other texts: our messages by code, media-chrome's labels by their English text. */
export function addWords(language: string, words: Dictionary): void {
  known[language] = { ...known[language], ...words };
  addTranslation(language, known[language]);
}

/** In the language of the last `speak` call, with English as fallback. */
export const words = (key: MessageKey | keyof typeof En, values: Record<string, string | number> = {}): string =>
  (t as (key: string, values: Record<string, string | number>) => string)(key, values);
export const speak = setLanguage;
/** The language of the part of the page where `element` is. */
export const languageAt = (element: Element): string =>
  element.closest<HTMLElement>("[lang]")?.lang || navigator.language;
