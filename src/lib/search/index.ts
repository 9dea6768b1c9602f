export { excerptOf, type Hit, hitsIn } from "./scan.ts";
export {
  assetSection,
  captionSections,
  type Line,
  lineOf,
  MATCH_KINDS,
  type MatchKind,
  readText,
  type Section,
} from "./sections.ts";
export { languageCondition, metaCondition, queryWords, wordCondition, wordsCondition } from "./terms.ts";
