import type { PageLanguage } from "../page-language.ts";

const EN = {
  search: "Search",
  searchIn: "Search in this collection",
  clear: "Show all",
  feed: "RSS feed",
  playAll: "Play all",
  oneVideo: "1 video",
  videos: "{count} videos",
  manyVideos: "More than {count} videos",
  found: "Results for “{q}”",
  nothingFound: "No video matches “{q}”.",
  empty: "There are no videos here yet.",
  more: "More videos",
  newest: "Back to the newest",
  minutes: "Duration {time}",
  notFound: "Collection not found",
  notFoundText: "The link may be mistyped, or the collection was deleted.",
  withdrawn: "This collection is no longer public",
  withdrawnText: "Ask its owner for a link to the video.",
  suspended: "This collection is not available",
  suspendedText: "The account that owns it is suspended.",
  playlist: "Playlist",
  previous: "Previous video",
  next: "Next video",
  autoplay: "Autoplay",
  showList: "Show the playlist",
};
type Texts = typeof EN;

const DE: Texts = {
  search: "Suchen",
  searchIn: "In dieser Sammlung suchen",
  clear: "Alle zeigen",
  feed: "RSS-Feed",
  playAll: "Alle abspielen",
  oneVideo: "1 Video",
  videos: "{count} Videos",
  manyVideos: "Mehr als {count} Videos",
  found: "Treffer für „{q}“",
  nothingFound: "Kein Video passt zu „{q}“.",
  empty: "Hier gibt es noch keine Videos.",
  more: "Weitere Videos",
  newest: "Zurück zu den neuesten",
  minutes: "Dauer {time}",
  notFound: "Sammlung nicht gefunden",
  notFoundText: "Der Link ist vielleicht falsch geschrieben, oder die Sammlung wurde gelöscht.",
  withdrawn: "Diese Sammlung ist nicht mehr öffentlich",
  withdrawnText: "Bitten Sie um einen Link zu dem Video.",
  suspended: "Diese Sammlung ist nicht verfügbar",
  suspendedText: "Das Konto, dem sie gehört, ist gesperrt.",
  playlist: "Wiedergabeliste",
  previous: "Vorheriges Video",
  next: "Nächstes Video",
  autoplay: "Autoplay",
  showList: "Wiedergabeliste zeigen",
};

/** The texts of the pages of collections. */
export const textsIn = (language: PageLanguage): Texts => (language === "de" ? DE : EN);

/** A text with its placeholders filled in. */
export const filled = (text: string, values: Record<string, string | number>): string =>
  text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
