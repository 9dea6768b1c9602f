import { useEffect, useState } from "preact/hooks";
import { remembered } from "../remembered.ts";
import type { Language } from "../texts/dictionary.ts";
import { LANGUAGES, useLanguage, useTexts } from "../texts/texts.tsx";

const THEMES = { system: "themeSystem", light: "themeLight", dark: "themeDark" } as const;
type Theme = keyof typeof THEMES;
const isTheme = (value: string | null): value is Theme => value !== null && Object.hasOwn(THEMES, value);

function useTheme() {
  const chosen = remembered.theme.get();
  const [theme, setTheme] = useState<Theme>(isTheme(chosen) ? chosen : "system");
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    remembered.theme.set(theme);
  }, [theme]);
  return { theme, setTheme };
}

export function Preferences() {
  const t = useTexts();
  const { language, choose } = useLanguage();
  const { theme, setTheme } = useTheme();
  return (
    <div class="preferences">
      <label>
        <span>{t("theme")}</span>
        <select value={theme} onChange={({ currentTarget }) => setTheme(currentTarget.value as Theme)}>
          {Object.entries(THEMES).map(([value, text]) => (
            <option key={value} value={value}>
              {t(text)}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>{t("language")}</span>
        <select value={language} onChange={({ currentTarget }) => choose(currentTarget.value as Language)}>
          {Object.entries(LANGUAGES).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
