import type { IconNode } from "lucide";
import type { ComponentChildren } from "preact";
import { Icon } from "../shell/icon.tsx";

type Props = { icon: IconNode; text: string; children?: ComponentChildren };

/** A page or list without content: what would be here, and the action that leads to it. */
export const Empty = ({ icon, text, children }: Props) => (
  <div class="blank">
    <span class="blank-icon">
      <Icon node={icon} />
    </span>
    <p>{text}</p>
    {children}
  </div>
);
