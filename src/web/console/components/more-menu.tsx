import { Ellipsis } from "lucide";
import type { ComponentChildren } from "preact";
import { useTexts } from "../texts/texts.tsx";
import { PopoverMenu } from "./popover-menu.tsx";

/** Rare actions behind a button. A click on one closes it. */
export function MoreMenu({ children }: { children: ComponentChildren }) {
  const t = useTexts();
  return (
    <PopoverMenu icon={Ellipsis} text={t("more")} closesOnClick>
      {children}
    </PopoverMenu>
  );
}
