import {
  type ComponentPublicInstance,
  type DefineSetupFnComponent,
  defineComponent,
  h,
  onBeforeUnmount,
  onMounted,
  shallowRef,
  watch,
} from "vue";
import { attributesOf, type PlayerAttributes } from "../player/attributes.ts";
import type { SvcPlayerElement } from "../player/element.ts";
import { EVENTS, type EventProps } from "../player/events.ts";
import { loadPlayer } from "../player/load-player.ts";

export type { SvcPlayerElement } from "../player/element.ts";
export type { PlayerError } from "../player/events.ts";

export type VodboxPlayerProps = PlayerAttributes & {
  /** Origin of the server, such as `https://video.example.com`, whose player is loaded. Default: that of the page. */
  server?: string | undefined;
  /** For a page with a content security policy. */
  nonce?: string | undefined;
};

/** `onTimeUpdate` becomes `timeUpdate`: `@time-update` in a template. */
type NameOf<Handler extends string> = Handler extends `on${infer Name}` ? Uncapitalize<Name> : never;
export type VodboxPlayerEvents = {
  [Name in keyof EventProps as NameOf<Name>]-?: (event: Parameters<NonNullable<EventProps[Name]>>[0]) => void;
};

/** What a template ref of the component has. */
export type VodboxPlayerInstance = ComponentPublicInstance<VodboxPlayerProps> & {
  /** The element, once it is in the page. */
  element: SvcPlayerElement | null;
};

/** An attribute without a value is true for these only. Undefined, not false, where they are not given. */
const SWITCH = { type: Boolean, default: undefined };
const PROPS = {
  playbackId: [String, Number],
  live: String,
  token: String,
  autoplay: SWITCH,
  muted: SWITCH,
  loop: SWITCH,
  poster: String,
  preload: String,
  startTime: Number,
  resume: String,
  pageKeys: SWITCH,
  transcript: { type: [Boolean, String], default: undefined },
  videoTitle: String,
  accentColor: String,
  analytics: String,
  disableTracking: SWITCH,
  lang: String,
  server: String,
  nonce: String,
} satisfies Record<keyof PlayerAttributes | "server" | "nonce", unknown>;

const names = Object.entries(EVENTS).map(
  ([handler, type]) => [(handler[2] as string).toLowerCase() + handler.slice(3), type] as const,
);

/** The vodbox player. `class`, `style` and other attributes are those of its element. */
export const VodboxPlayer: DefineSetupFnComponent<VodboxPlayerProps, VodboxPlayerEvents> = defineComponent<
  VodboxPlayerProps,
  VodboxPlayerEvents
>(
  (props, { emit, expose }) => {
    const element = shallowRef<SvcPlayerElement | null>(null);
    const removers: (() => void)[] = [];
    onMounted(() => {
      watch(
        () => [props.server ?? "", props.nonce] as const,
        ([server, nonce]) => loadPlayer(server, nonce),
        { immediate: true },
      );
      const player = element.value;
      for (const [name, type] of player ? names : []) {
        const listener = (event: Event) => (emit as (name: string, event: Event) => void)(name, event);
        player?.addEventListener(type, listener);
        removers.push(() => player?.removeEventListener(type, listener));
      }
    });
    onBeforeUnmount(() => {
      for (const remove of removers) remove();
    });
    expose({ element });
    return () => h("svc-player", { ...attributesOf(props), ref: element });
  },
  { name: "VodboxPlayer", props: PROPS as never, emits: names.map(([name]) => name) as never },
);
