import { Ellipsis } from "lucide";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Icon } from "../shell/icon.tsx";
import { useTexts } from "../texts/texts.tsx";

/** Rare actions behind a button. A click on one, Escape and a click elsewhere close it. */
export function MoreMenu({ children }: { children: ComponentChildren }) {
  const t = useTexts();
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  // What is chosen has keys of its own; this only follows it.
  useEffect(() => panel.current?.addEventListener("click", () => panel.current?.hidePopover()), []);
  const place = () => {
    const { bottom, right } = (button.current as HTMLButtonElement).getBoundingClientRect();
    const { style } = panel.current as HTMLDivElement;
    style.top = `${bottom + 4}px`;
    style.right = `${Math.max(0, document.documentElement.clientWidth - right)}px`;
  };
  return (
    <>
      <button ref={button} type="button" class="more" popovertarget={id} onClick={place}>
        <Icon node={Ellipsis} />
        {t("more")}
      </button>
      <div id={id} ref={panel} popover="auto" class="more-menu">
        {children}
      </div>
    </>
  );
}
