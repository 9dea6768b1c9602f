/** The panel has the colors of the page around it. */
export const STYLE = `
:host{display:block;--_accent:var(--svc-accent-color,#4c8dff);--_line:color-mix(in srgb,currentColor 18%,transparent);
font-size:.95rem;line-height:1.45;border:1px solid var(--_line);border-radius:10px;overflow:hidden}
:host([hidden]){display:none}
header{display:flex;flex-wrap:wrap;align-items:center;gap:.4rem .6rem;padding:.6rem .9rem;border-bottom:1px solid var(--_line)}
h2{font-size:1rem;margin:0;flex:1}
select,header button{font:inherit;font-size:.85rem;color:inherit;background:transparent;border:1px solid var(--_line);border-radius:6px;padding:.2rem .55rem;min-height:1.9rem}
option{color:CanvasText;background:Canvas}
header button,li button{cursor:pointer}
header button:hover,li button:hover{background:color-mix(in srgb,currentColor 8%,transparent)}
:focus-visible{outline:2px solid var(--_accent);outline-offset:-2px}
ol{list-style:none;margin:0;padding:.3rem 0;max-height:20rem;overflow-y:auto;position:relative;overscroll-behavior:contain}
li{content-visibility:auto;contain-intrinsic-size:auto 2.1rem}
li button{display:flex;gap:.8rem;width:100%;font:inherit;text-align:start;color:inherit;background:none;border:0;border-inline-start:3px solid transparent;padding:.3rem .9rem}
li button[aria-current]{border-color:var(--_accent);background:color-mix(in srgb,var(--_accent) 16%,transparent);font-weight:600}
time{font-variant-numeric:tabular-nums;opacity:.8;min-width:3.4em;font-weight:400}
bdi{flex:1;min-width:0;overflow-wrap:anywhere}
p{margin:0;padding:.8rem .9rem}
`;

/** For the player, when the panel is below its video. */
export const PLAYER_STYLE = `
:host{aspect-ratio:auto;background:none;overflow:visible}
:is(media-controller,.message){aspect-ratio:16/9;height:auto;inset:0 0 auto}
:host(:fullscreen) svc-transcript{display:none}
:host(:fullscreen) :is(media-controller,.message){aspect-ratio:auto;height:100%}
svc-transcript{margin-top:.8rem}
`;
