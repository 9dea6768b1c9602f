import { useEffect, useState } from "preact/hooks";
import { remembered } from "./remembered.ts";

export const THEMES = { system: "themeSystem", light: "themeLight", dark: "themeDark" } as const;
export type Theme = keyof typeof THEMES;
export const isTheme = (value: string | null): value is Theme => value !== null && Object.hasOwn(THEMES, value);

const chosen = remembered.theme.get();
let current: Theme = isTheme(chosen) ? chosen : "system";
const listeners = new Set<(theme: Theme) => void>();
apply();

function apply(): void {
  if (current === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = current;
}

export function setTheme(theme: Theme): void {
  current = theme;
  remembered.theme.set(theme);
  apply();
  for (const listener of listeners) listener(theme);
}

export function useTheme(): Theme {
  const [theme, setShown] = useState(current);
  useEffect(() => {
    setShown(current);
    listeners.add(setShown);
    return () => void listeners.delete(setShown);
  }, []);
  return theme;
}
