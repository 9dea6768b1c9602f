/**
 * Copies `text` to the clipboard. Rejects where the browser allows neither its API nor a command, with a message for people.
 * The API exists only with TLS and on localhost, and a page that embeds this one can forbid it (Clipboard API, clause 7).
 */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text);
  }
}

function copyBySelection(text: string): void {
  const area = document.createElement("textarea");
  area.value = text;
  // A modal dialog makes everything outside of it inert.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error("The browser does not allow copying: select the text, and copy it with the keyboard.");
}
