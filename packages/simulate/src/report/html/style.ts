import { MAX_STEPS } from './plot/movable.js'

/** Shows the line and the sentence of the limit that the reader has chosen. */
const CHOSEN = Array.from({ length: MAX_STEPS }, (_, i) => i)
const CHOSEN_TEXT = CHOSEN.map((i) => `.step-${i}:checked ~ .at-${i}`).join(', ')
const CHOSEN_LINE = CHOSEN.map((i) => `.step-${i}:checked ~ figure .at-${i}`).join(', ')

/** The style of the page, for light and dark. Its policy has the hash of this text and allows no other style, not even in attributes. */
export const STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de; --soft: #f6f8fa;
  --first: #0860c4; --second: #b35000; --good: #116329; --link: #0860c4; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --quiet: #9da7b3; --line: #363d47; --soft: #161b22;
  --first: #4d9ffb; --second: #f0883e; --good: #56d364; --link: #79b8ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 78rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0.5rem 0; line-height: 1.25; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 0.5rem; padding-top: 0.75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 2rem 0 0.25rem; }
.lead { font-size: 1.1rem; }
.answer { margin: 0.5rem 0; font-size: 1.1rem; }
.answer strong { font-size: 2.5rem; line-height: 1.1; margin-right: 0.25rem; font-variant-numeric: tabular-nums; }
.movable { margin: 1rem 0; padding: 0.5rem 1rem; border: 1px solid var(--line); border-radius: 6px; min-width: 0; }
.movable input { position: absolute; opacity: 0; }
.movable label { display: inline-block; min-width: 2.75rem; margin: 0.15rem 0; padding: 0.3rem 0.5rem; border: 1px solid var(--line); border-radius: 6px;
  text-align: center; font-variant-numeric: tabular-nums; cursor: pointer; }
.movable input:checked + label { background: var(--text); color: var(--back); border-color: var(--text); }
.movable input:focus-visible + label { outline: 2px solid var(--first); outline-offset: 2px; }
.movable p { margin: 0.5rem 0 0; font-weight: 600; }
.at { display: none; }
${CHOSEN_TEXT} { display: block; }
${CHOSEN_LINE} { display: inline; }
pre { margin: 0; overflow-wrap: normal; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; padding: 0; list-style: none; }
nav a { display: inline-block; padding: 0.15rem 0; }
code { font: 0.875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--first); outline-offset: 2px; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 0.75rem; margin: 1rem 0; }
.figures div { padding: 0.5rem 0.75rem; background: var(--soft); border: 1px solid var(--line); border-radius: 6px; }
dt { color: var(--quiet); font-size: 0.875rem; }
dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.caveats { padding: 0.5rem 1rem 0.5rem 2rem; background: var(--soft); border: 1px solid var(--line); border-left: 4px solid var(--second);
  border-radius: 6px; }
.scroll { overflow-x: auto; margin: 1rem 0; /* A shade where there is more to scroll to. */
  background: linear-gradient(to right, var(--back) 30%, transparent) left / 2rem 100% no-repeat local,
    linear-gradient(to left, var(--back) 30%, transparent) right / 2rem 100% no-repeat local,
    linear-gradient(to right, var(--line), transparent) left / 0.75rem 100% no-repeat scroll,
    linear-gradient(to left, var(--line), transparent) right / 0.75rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: 0.9rem; }
.caption { font-weight: 600; margin: 1rem 0 0.25rem; }
.caption + .scroll { margin-top: 0; }
th, td { padding: 0.35rem 0.75rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
tbody th { font-weight: 400; position: sticky; left: 0; background: var(--back); }
thead th { color: var(--quiet); font-weight: 600; vertical-align: bottom; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.whole, tbody .number, tbody th code { white-space: nowrap; }
.path { display: block; min-width: 10rem; }
.agent { display: block; min-width: 11rem; max-width: 24rem; overflow-wrap: anywhere; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; color: var(--link); padding: 0.15rem 0; }
figure { margin: 1.25rem 0 1rem; overflow: hidden; }
figcaption { font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: 0 1rem; margin: 0.1rem 0 0; padding: 0; list-style: none; font-size: 0.875rem; }
.swatch { width: 14px; height: 14px; margin-right: 0.4rem; vertical-align: -2px; }
.plot { display: block; overflow: visible; width: calc(100% - 5.5rem); height: 15rem; margin: 2rem 1.25rem 3rem 4.25rem; }
.plot text { font-size: 12px; fill: var(--quiet); }
.plot .mark { fill: var(--text); font-weight: 600; paint-order: stroke; stroke: var(--back); stroke-width: 4px; stroke-linejoin: round; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.grid { stroke: var(--line); stroke-width: 1; }
.admitted, .requests { fill: var(--first); stroke: var(--first); }
.refused, .clients { fill: var(--second); stroke: var(--second); }
.admitted, .refused { stroke: none; }
.limit { fill: var(--text); stroke: var(--text); }
.suggested { stroke: var(--good); stroke-dasharray: 6 4; }
.line { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
.limit.line { stroke-width: 1.5; }
footer { margin-top: 3rem; padding-top: 0.75rem; border-top: 1px solid var(--line); color: var(--quiet); font-size: 0.9rem; }
`
