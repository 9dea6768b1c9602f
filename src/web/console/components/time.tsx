import { dateTime } from "../format.ts";
import { useLanguage } from "../texts/texts.tsx";

/** Date and time in the viewer's zone. */
export function Time({ at }: { at: string | null }) {
  const { language } = useLanguage();
  return at === null ? <>–</> : <time dateTime={at}>{dateTime(at, language)}</time>;
}
