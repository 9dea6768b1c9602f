import { dictionary } from "#web/console/texts/dictionary.ts";

export const generateTexts = dictionary(
  {
    generate: "Generate captions",
    generateHint: "The speech becomes subtitles. This takes a while; the list shows when they are there.",
    spokenLanguage: "Spoken language",
    spokenHint: "A tag such as en or pt-BR. Empty: detect it",
    alsoTranslate: "Translate to",
    alsoTranslateHint: "Tags, separated by commas. Optional",
    generating: "Captions are being generated",
    noTranscription: "Captions cannot be generated: neither this server nor a worker can transcribe.",
    confidence: "confidence {share} %",
  },
  {
    generate: "Untertitel erzeugen",
    generateHint: "Aus der Sprache werden Untertitel. Das dauert eine Weile; die Liste zeigt, wann sie da sind.",
    spokenLanguage: "Gesprochene Sprache",
    spokenHint: "Ein Kürzel wie en oder pt-BR. Leer: erkennen",
    alsoTranslate: "Übersetzen in",
    alsoTranslateHint: "Kürzel, durch Kommas getrennt. Optional",
    generating: "Untertitel werden erzeugt",
    noTranscription: "Untertitel können nicht erzeugt werden: Weder dieser Server noch ein Worker kann transkribieren.",
    confidence: "Sicherheit {share} %",
  },
);
