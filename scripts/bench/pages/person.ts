import type { Locator, Page } from "playwright-core";

/** What a person did for a task. `seconds` are those of the program: a person also reads. */
export type Effort = { clicks: number; fields: number; seconds: number };

/** A person in front of a page, whose clicks and filled fields are counted. A field that is chosen is a click as well. */
export class Person {
  readonly page: Page;
  #clicks = 0;
  #fields = 0;
  readonly #from = performance.now();

  constructor(page: Page) {
    this.page = page;
  }

  async click(what: Locator): Promise<void> {
    await what.click();
    this.#clicks++;
  }

  async fill(field: Locator, text: string): Promise<void> {
    await field.fill(text);
    this.#clicks++;
    this.#fields++;
  }

  /** Opens a list and chooses from it. */
  async choose(list: Locator, label: string): Promise<void> {
    await list.selectOption({ label });
    this.#clicks += 2;
  }

  /** The button opens the system's dialog, in which a file is chosen and confirmed. */
  async chooseFile(button: Locator, path: string): Promise<void> {
    const [chooser] = await Promise.all([this.page.waitForEvent("filechooser"), button.click()]);
    await chooser.setFiles(path);
    this.#clicks += 3;
  }

  button = (name: string, within: Page | Locator = this.page) => within.getByRole("button", { name, exact: true });
  link = (name: string | RegExp, within: Page | Locator = this.page) =>
    within.getByRole("link", { name, exact: typeof name === "string" });
  dialog = () => this.page.getByRole("dialog");

  effort(): Effort {
    return { clicks: this.#clicks, fields: this.#fields, seconds: (performance.now() - this.#from) / 1000 };
  }
}
