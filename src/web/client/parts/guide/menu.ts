/** On a narrow screen the list of pages is behind a button. */
export function foldMenu(): void {
  const button = document.querySelector<HTMLButtonElement>("#menu");
  const side = document.querySelector<HTMLElement>("#side");
  if (!button || !side) return;
  const show = (isShown: boolean) => {
    button.setAttribute("aria-expanded", String(isShown));
    side.classList.toggle("shown", isShown);
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-expanded") !== "true"));
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && side.classList.contains("shown")) {
      show(false);
      button.focus();
    }
  });
  side.querySelector('[aria-current="page"]')?.scrollIntoView({ block: "nearest" });
}
