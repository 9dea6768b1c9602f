import type { Language } from "../texts/dictionary.ts";
import { LANGUAGES, useLanguage, useTexts } from "../texts/texts.tsx";
import { setTheme, THEMES, type Theme, useTheme } from "../theme.ts";

type Props = {
  /** Called with what the person chose, in addition to applying it. */
  onChoose?: ((choice: { language: Language } | { theme: "light" | "dark" | null }) => void) | undefined;
};

export function Preferences({ onChoose }: Props) {
  const t = useTexts();
  const { language, choose } = useLanguage();
  const theme = useTheme();
  const chooseTheme = (next: Theme) => {
    setTheme(next);
    onChoose?.({ theme: next === "system" ? null : next });
  };
  const chooseLanguage = (next: Language) => {
    choose(next);
    onChoose?.({ language: next });
  };
  return (
    <div class="preferences">
      <label>
        <span>{t("theme")}</span>
        <select value={theme} onChange={({ currentTarget }) => chooseTheme(currentTarget.value as Theme)}>
          {Object.entries(THEMES).map(([value, text]) => (
            <option key={value} value={value}>
              {t(text)}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>{t("language")}</span>
        <select value={language} onChange={({ currentTarget }) => chooseLanguage(currentTarget.value as Language)}>
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
