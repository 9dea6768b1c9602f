/** The items of an option such as `en,pt-BR`, without spaces around them and empty ones. */
export const listOf = (text: string): string[] =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);
