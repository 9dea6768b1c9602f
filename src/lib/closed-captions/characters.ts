/** Characters of the set G2 of CEA-708 that are not at their place in Latin-1 (ANSI/CTA-708-E, 7.1.8). */
const G2: Readonly<Record<number, string>> = {
  ...{ 32: " ", 33: "\u00a0", 37: "…", 42: "Š", 44: "Œ", 48: "█", 49: "‘", 50: "’", 51: "“", 52: "”", 53: "•" },
  ...{ 57: "™", 58: "š", 60: "œ", 61: "℠", 63: "Ÿ", 118: "⅛", 119: "⅜", 120: "⅝", 121: "⅞" },
  ...{ 122: "│", 123: "┐", 124: "└", 125: "─", 126: "┘", 127: "┌" },
};
/** The only one of the set G3: captions are meant for those who do not hear. */
const CAPTIONS = 0xa0;

/** The character of a code of the sets G2 and G3; others are shown as an underscore, as the standard says. */
export const extendedCharacter = (code: number): string => (code === CAPTIONS ? "[CC]" : (G2[code] ?? "_"));
