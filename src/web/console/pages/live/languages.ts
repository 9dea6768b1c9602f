/** The tags of a list such as `en, pt-BR`. */
export const languages = (list: string) =>
  list
    .split(",")
    .map((tag) => tag.trim())
    .filter(Boolean);
