import type { IconNode } from "lucide";
import { h } from "preact";

/** An icon of the open set Lucide, in the color and size of the text around it. It is an ornament: a text says the same. */
export const Icon = ({ node }: { node: IconNode }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    {node.map(([name, attributes], index) => h(name, { key: index, ...attributes }))}
  </svg>
);
