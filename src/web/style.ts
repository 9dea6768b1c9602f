/** The pages' whole style; small enough to travel with each. */
export const PAGE_STYLE = `
:root{color-scheme:light dark;--back:#f6f7f9;--fore:#14181f;--soft:#5b6472;--card:#fff;--line:#dfe3e9}
@media(prefers-color-scheme:dark){:root{--back:#0e1116;--fore:#eef1f5;--soft:#9aa5b4;--card:#161b22;--line:#252c37}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--fore);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1rem 3rem}
.frame{position:relative;background:#000;border-radius:12px;overflow:hidden;aspect-ratio:var(--shape,16/9);max-height:80vh;margin:0 auto}
video{display:block;width:100%;height:100%;background:#000;object-fit:contain}
h1{font-size:1.4rem;line-height:1.3;margin:1.1rem 0 .3rem;overflow-wrap:anywhere}
.about{color:var(--soft);margin:0;font-size:.95rem}
.description{white-space:pre-line;overflow-wrap:anywhere;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.9rem 1.1rem;margin:1rem 0 0}
.message{display:grid;place-content:center;gap:.4rem;min-height:16rem;text-align:center;padding:2rem;color:#e8ecf2}
.message strong{font-size:1.15rem}
.message span{color:#aeb8c6}
.notice{position:absolute;inset:auto 0 0 0;margin:0;padding:.7rem 1rem;background:rgba(140,20,20,.92);color:#fff}
.notice[hidden]{display:none}
.embed,.embed body{height:100%}
.embed .frame{height:100%;max-height:none;border-radius:0;aspect-ratio:auto}
`;
