/**
 * What two columns display: the wide and fullwidth characters of East Asian scripts (Unicode Standard Annex 11), of which a line
 * of 42 columns then has 21, and a second of 20 columns has 10. Both agree with the guides for Chinese, Japanese and Korean
 * subtitles, which have 13 to 16 characters in a line and read 4 to 12 in a second.
 */
const WIDE =
  /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}\p{scx=Yiii}\u3000-\u303f\uff01-\uff60\uffe0-\uffe6\p{Emoji_Presentation}]/u;
/** Marks that combine with the character before, and what is not displayed. */
const WITHOUT = /[\p{Mn}\p{Me}\p{Cf}]/u;
const ASCII = /^[\x20-\x7e]*$/;

/** Columns of a text in one line. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const character of text) {
    if (character <= "\x7e") width++;
    else if (!WITHOUT.test(character)) width += WIDE.test(character) ? 2 : 1;
  }
  return width;
}
