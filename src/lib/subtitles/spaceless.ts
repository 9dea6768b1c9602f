/** Letters of scripts that are written without spaces between words, as the content of a class of a pattern. */
export const SPACELESS = String.raw`\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}`;
export const HAS_SPACELESS = new RegExp(`[${SPACELESS}]`, "u");
