const NUMBER = "\\d{1,9}(?:\\.\\d{1,9})?";
const PERCENTAGE = new RegExp(`^(${NUMBER})%$`);
const isPercentage = (value: string) => Number(PERCENTAGE.exec(value)?.[1] ?? 101) <= 100;
const isNumber = (value: string) => new RegExp(`^-?${NUMBER}$`).test(value);
const oneOf = (value: string | undefined, ...known: string[]) => value === undefined || known.includes(value);

type Check = { accepts(value: string): boolean; expected: string };

/** WebVTT, 4.4: the settings of a cue. */
const CUE: Record<string, Check> = {
  vertical: { accepts: (value) => oneOf(value, "rl", "lr"), expected: "rl or lr" },
  line: {
    accepts(value) {
      const [place = "", align, ...rest] = value.split(",");
      return rest.length === 0 && (isNumber(place) || isPercentage(place)) && oneOf(align, "start", "center", "end");
    },
    expected: "a number or a percentage, and after a comma start, center or end",
  },
  position: {
    accepts(value) {
      const [place = "", align, ...rest] = value.split(",");
      return rest.length === 0 && isPercentage(place) && oneOf(align, "line-left", "center", "line-right");
    },
    expected: "a percentage, and after a comma line-left, center or line-right",
  },
  size: { accepts: isPercentage, expected: "a percentage" },
  align: {
    accepts: (value) => oneOf(value, "start", "center", "end", "left", "right"),
    expected: "start, center, end, left or right",
  },
  region: { accepts: (value) => value !== "", expected: "a region's id" },
};

const isAnchor = (value: string) => value.split(",").length === 2 && value.split(",").every(isPercentage);

/** WebVTT, 4.3: the settings of a region. */
const REGION: Record<string, Check> = {
  id: { accepts: (value) => value !== "", expected: "an id" },
  width: { accepts: isPercentage, expected: "a percentage" },
  lines: { accepts: (value) => /^\d{1,9}$/.test(value), expected: "a whole number" },
  regionanchor: { accepts: isAnchor, expected: "two percentages with a comma between them" },
  viewportanchor: { accepts: isAnchor, expected: "two percentages with a comma between them" },
  scroll: { accepts: (value) => value === "up", expected: "up" },
};

const MAX_SETTINGS = 20;
const quote = (text: string) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);

function fault(known: Record<string, Check>, settings: string, seen: Set<string>): string | null {
  for (const setting of settings.split(/[ \t]+/, MAX_SETTINGS).filter(Boolean)) {
    const colon = setting.indexOf(":");
    const name = setting.slice(0, Math.max(colon, 0));
    const check = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!check) return `${quote(setting)} is not a setting; the settings are ${Object.keys(known).join(", ")}`;
    if (seen.has(name)) return `the setting ${name} is given twice`;
    seen.add(name);
    if (!check.accepts(setting.slice(colon + 1))) return `${quote(setting)}: ${name} must be ${check.expected}`;
  }
  return null;
}

/** The fault in a cue's settings, or null. */
export const cueSettingsFault = (settings: string) => fault(CUE, settings, new Set());
/** The same for a line of a REGION block; `seen` are the names on earlier lines. */
export const regionSettingsFault = (line: string, seen: Set<string>) => fault(REGION, line, seen);
