import { ArrowLeft } from "lucide";
import type { ComponentChildren } from "preact";
import { pagePath } from "../base.ts";
import { usePageTitle } from "../page-title.tsx";
import { Icon } from "../shell/icon.tsx";
import { useTexts } from "../texts/texts.tsx";

type Props = {
  title: string;
  /** The page that lists what this one shows, such as `assets`. */
  back?: string;
  /** The state of what the page shows, next to the title. */
  state?: ComponentChildren;
  children?: ComponentChildren;
};

/** The heading of a page, with its actions; it is also the title of the window. */
export function PageHead({ title, back, state, children }: Props) {
  const t = useTexts();
  usePageTitle(title);
  return (
    <div class="page-head">
      <div class="row heading">
        {back && (
          <a class="back" href={pagePath(back)} aria-label={t("back")}>
            <Icon node={ArrowLeft} />
          </a>
        )}
        <h1>{title}</h1>
        {state}
      </div>
      <div class="row">{children}</div>
    </div>
  );
}
