/** What the browser keeps of a person's choices. Nothing secret, and nothing that a page needs. */
const item = (name: string) => ({
  get(): string | null {
    try {
      return localStorage.getItem(`vodbox.${name}`);
    } catch {
      // Storage may be forbidden.
      return null;
    }
  },
  set(value: string): void {
    try {
      localStorage.setItem(`vodbox.${name}`, value);
    } catch {
      // The choice lasts until the page is closed.
    }
  },
});

export const remembered = {
  language: item("language"),
  theme: item("theme"),
  layout: item("layout"),
  columns: item("columns"),
};
