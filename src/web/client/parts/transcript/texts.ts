/** Texts of the panel, in the languages of the player. */
type Texts = {
  transcript: string;
  language: string;
  /** With the times of the lines. */
  copy: string;
  copied: string;
  /** Completed by a format, such as TXT. */
  download: string;
  failed: string;
};

const ENGLISH: Texts = {
  transcript: "Transcript",
  language: "Language",
  copy: "Copy with times",
  copied: "Copied",
  download: "Download as",
  failed: "The transcript cannot be loaded right now.",
};

const OTHERS: Record<string, Texts> = {
  de: {
    transcript: "Transkript",
    language: "Sprache",
    copy: "Mit Zeiten kopieren",
    copied: "Kopiert",
    download: "Herunterladen als",
    failed: "Das Transkript ist gerade nicht erreichbar.",
  },
  es: {
    transcript: "Transcripción",
    language: "Idioma",
    copy: "Copiar con tiempos",
    copied: "Copiado",
    download: "Descargar como",
    failed: "No se puede cargar la transcripción ahora.",
  },
  fr: {
    transcript: "Transcription",
    language: "Langue",
    copy: "Copier avec les temps",
    copied: "Copié",
    download: "Télécharger en",
    failed: "La transcription est injoignable pour le moment.",
  },
  pt: {
    transcript: "Transcrição",
    language: "Idioma",
    copy: "Copiar com os tempos",
    copied: "Copiado",
    download: "Transferir como",
    failed: "Não é possível carregar a transcrição agora.",
  },
};

/** `language` is a BCP 47 tag; English for one without texts. */
export const textsIn = (language: string): Texts => OTHERS[language.split("-")[0] as string] ?? ENGLISH;
