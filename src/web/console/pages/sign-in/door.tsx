import type { ComponentChildren } from "preact";
import { Preferences } from "#web/console/components/preferences.tsx";
import { usePageTitle } from "#web/console/page-title.tsx";
import { Mark } from "#web/console/shell/brand.tsx";

type Props = {
  title: string;
  /** The title of the window, where it is shorter. */
  windowTitle?: string;
  hint?: string;
  children: ComponentChildren;
};

/** A page before the sign-in: what it is for, and its form as a card. */
export function Door({ title, windowTitle = title, hint, children }: Props) {
  usePageTitle(windowTitle);
  return (
    <main class="door">
      <header>
        <Mark />
        <h1>{title}</h1>
        {hint && <p>{hint}</p>}
      </header>
      <div class="card">{children}</div>
      <Preferences />
    </main>
  );
}
