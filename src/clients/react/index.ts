"use client";

import {
  type CSSProperties,
  createElement,
  type ForwardRefExoticComponent,
  forwardRef,
  type RefAttributes,
  useEffect,
  useImperativeHandle,
  useRef,
} from "react";
import { attributesOf, type PlayerAttributes } from "../player/attributes.ts";
import type { SvcPlayerElement } from "../player/element.ts";
import { EVENTS, type EventProps } from "../player/events.ts";
import { loadPlayer } from "../player/load-player.ts";

export type { SvcPlayerElement } from "../player/element.ts";
export type { PlayerError } from "../player/events.ts";

export type VodboxPlayerProps = PlayerAttributes &
  EventProps & {
    /** Origin of the server, such as `https://video.example.com`, whose player is loaded. Default: that of the page. */
    server?: string;
    /** For a page with a content security policy. */
    nonce?: string;
    id?: string;
    className?: string;
    style?: CSSProperties;
  };

/** The vodbox player. Its ref is the element, once it is in the page. */
export const VodboxPlayer: ForwardRefExoticComponent<VodboxPlayerProps & RefAttributes<SvcPlayerElement>> = forwardRef<
  SvcPlayerElement,
  VodboxPlayerProps
>(function VodboxPlayer(props, ref) {
  const element = useRef<SvcPlayerElement>(null);
  const current = useRef<EventProps>(props);
  const { server = "", nonce, id, className, style } = props;

  useEffect(() => {
    current.current = props;
  });
  useEffect(() => loadPlayer(server, nonce), [server, nonce]);
  useEffect(() => {
    const player = element.current;
    if (!player) return;
    const listeners = Object.entries(EVENTS).map(([name, type]) => {
      const listener = (event: Event) => current.current[name as keyof EventProps]?.(event as never);
      player.addEventListener(type, listener);
      return () => player.removeEventListener(type, listener);
    });
    return () => {
      for (const remove of listeners) remove();
    };
  }, []);
  useImperativeHandle(ref, () => element.current as SvcPlayerElement, []);

  return createElement("svc-player", { ...attributesOf(props), ref: element, id, class: className, style });
});
