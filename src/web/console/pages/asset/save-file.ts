/** Has the browser save what is at a URL. */
export function saveUrl(url: string, filename: string): void {
  const link = Object.assign(document.createElement("a"), { href: url, download: filename });
  link.click();
}

/** Has the browser save a text as a file. */
export function saveText(text: string, filename: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  saveUrl(url, filename);
  // The browser reads it later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
