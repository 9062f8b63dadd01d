import type { SimulationReport } from '../../packages/simulate/src/report.js'

/** Texts by which a client would change a page, a terminal, or what people read. */
export const HOSTILE = [
  '<script>document.title = "owned"</script>',
  '</script><img src=x onerror="document.title=\'owned\'">',
  '<!--<script>',
  '"><svg onload=document.title="owned">',
  "' onmouseover='document.title=1' x='",
  ']]><style>*{display:none}</style>',
  '&lt;b&gt;&#60;i&#62;',
  '{{7*7}} <%= 1 %> `',
  '\u001b[2J\u001b]0;owned\u0007 \u009b31m',
  'line\r\nbreak\u2028and\u2029more\u0000',
  'user\u202egpj.exe \u2066hidden\u2069 a\u200bb\ufeff\u{e0041}',
  'lone \ud800 surrogate',
]

/** A report in which all texts that come from a log or a document are this one. */
export function withTexts(report: SimulationReport, text: string): SimulationReport {
  const own = new Set(['identities', 'mode'])
  const changed = (value: unknown, name = ''): unknown => {
    if (typeof value === 'string') return own.has(name) ? value : text
    if (Array.isArray(value)) return value.map((each) => changed(each))
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).map(([name, each]) => [name, changed(each, name)])
    // Statuses are keys, and a log may have any text in their place.
    return Object.fromEntries('200' in value ? [[text, 7], ...entries] : entries)
  }
  return changed(report) as SimulationReport
}
