import type { IconNode } from "lucide";
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { Icon } from "../shell/icon.tsx";

type Props = {
  icon: IconNode;
  text: string;
  children: ComponentChildren;
  /** Whether a choice closes it, as of actions; several can be made in one that stays open. */
  closesOnClick?: boolean;
};

/** A button with a menu below it, which the browser opens and closes: with Enter, Space and Escape, and by a click elsewhere. */
export function PopoverMenu({ icon, text, children, closesOnClick = false }: Props) {
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const place = () => {
    const { bottom, right } = (button.current as HTMLButtonElement).getBoundingClientRect();
    const { style } = panel.current as HTMLDivElement;
    style.top = `${bottom + 4}px`;
    style.right = `${Math.max(0, document.documentElement.clientWidth - right)}px`;
  };
  return (
    <>
      <button ref={button} type="button" class="more" popovertarget={id} onClick={place}>
        <Icon node={icon} />
        {text}
      </button>
      {/* What is chosen has keys of its own; this only follows it. */}
      {/* biome-ignore lint/a11y: see above */}
      <div
        id={id}
        ref={panel}
        popover="auto"
        class="more-menu"
        onClick={closesOnClick ? () => panel.current?.hidePopover() : undefined}
      >
        {children}
      </div>
    </>
  );
}
