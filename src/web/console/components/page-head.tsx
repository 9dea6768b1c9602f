import type { ComponentChildren } from "preact";
import { usePageTitle } from "../page-title.tsx";

/** The heading of a page, with its actions; it is also the title of the window. */
export function PageHead({ title, children }: { title: string; children?: ComponentChildren }) {
  usePageTitle(title);
  return (
    <div class="page-head">
      <h1>{title}</h1>
      <div class="row">{children}</div>
    </div>
  );
}
