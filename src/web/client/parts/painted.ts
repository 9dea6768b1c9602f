/** A poster that is not there by then does not delay the player. */
const MOST_MS = 100;

/**
 * Resolves when `image` is on the screen, or after a tenth of a second: a viewer of a slow device sees the poster before
 * the controls are created, which takes longer.
 */
export async function painted(image: HTMLImageElement): Promise<void> {
  const shown = image.decode().then(
    () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))),
    () => {},
  );
  await Promise.race([shown, new Promise((resolve) => setTimeout(resolve, MOST_MS))]);
}
