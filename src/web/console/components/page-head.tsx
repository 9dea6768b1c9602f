import type { ComponentChildren } from "preact";

/** The heading of a page, with its actions. */
export function PageHead({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="page-head">
      <h1>{title}</h1>
      <div class="row">{children}</div>
    </div>
  );
}
