import { bytes, grouped } from '@sluice/core/internal'
import type { RedisCost } from '../../../report.js'
import { type Markup, markup } from '../markup.js'
import { figures, table } from '../table.js'
import { rangeText, spanText } from '../words.js'

/** The price of the policies in Redis, for the whole log. */
export function redisSection({ commands, cpuMs, bytes: size, hot }: RedisCost): Markup {
  const unknown = 'not measured for such a case'
  return markup`<section aria-labelledby="redis"><h2 id="redis">Cost in Redis</h2>
<p>For the whole log, by the tables of Sluice's benchmarks, without extrapolation.</p>
${figures([
  ['Commands', grouped(commands)],
  ['CPU time', cpuMs ? rangeText(cpuMs, spanText) : unknown],
  ['Memory', size ? rangeText(size, bytes) : unknown],
])}${hot.length === 0 ? markup`<p>No identity is so busy that its key needs a lease.</p>` : hotTable(hot)}</section>
`
}

function hotTable(hot: RedisCost['hot']): Markup {
  return table(
    'hot',
    'Identities so busy that a lease is worth it',
    [
      { heading: 'Identity', cell: ({ identity }) => markup`<code>${identity}</code>` },
      { heading: 'Decisions a second', cell: ({ perSecond }) => grouped(Math.round(perSecond)), isNumber: true },
    ],
    hot,
  )
}
