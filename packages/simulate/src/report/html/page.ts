import { createHash } from 'node:crypto'
import { counted, grouped, percent } from '@sluice/core/internal'
import type { SimulationReport, Timeline } from '../../report.js'
import type { WithProposal } from '../proposal-text.js'
import { jsonMarkup, Markup, markup } from './markup.js'
import { timelinePlot } from './plot/timeline.js'
import { clientsTable } from './sections/clients.js'
import { comparisonSection } from './sections/comparison.js'
import { logSection, overview, shareOf } from './sections/overview.js'
import { policySection } from './sections/policies.js'
import { answer, proposalSections } from './sections/proposal.js'
import { redisSection } from './sections/redis.js'
import { splitsSection } from './sections/splits.js'
import { STYLE } from './style.js'
import { table } from './table.js'
import { timeText } from './words.js'

/** No script, no request, no frame, and no style but the page's own. */
const SECURITY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

/** How every page begins, by which a later run knows a page that it may replace. */
export const PAGE_START = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="sluice simulate">
`

/**
 * The report as one HTML file, which needs nothing else: no script, no network. It holds the report as JSON, too, in the element
 * `report`. Texts of clients are shown as text.
 *
 * @param report shown as it is: with pseudonyms for readers who may not know the clients
 */
export function pageOf(report: SimulationReport): string {
  return markup`${new Markup(PAGE_START)}<meta http-equiv="Content-Security-Policy" content="${new Markup(SECURITY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>${titleOf(report)}</title>
<style>${new Markup(STYLE)}</style>
</head>
<body>
<header><h1>${headingOf(report)}</h1></header>
<main>
${report.proposal ? withProposal({ ...report, proposal: report.proposal }) : withDocument(report)}</main>
<footer><p>Made by <code>sluice simulate</code>. All times are in UTC. ${identitiesText(report)} The report as JSON is in this file, in the element <code>report</code>.</p></footer>
<script type="application/json" id="report">${jsonMarkup(report)}</script>
</body>
</html>
`.text
}

/** The result of a document that was given. */
function withDocument(report: SimulationReport): Markup {
  const { caveats, policies, timeline, refused, good, against, redis, splits } = report
  return markup`${overview(report)}${navigation(contents(report))}
${against && comparisonSection(against)}${caveats.length > 0 ? caveatsSection(caveats) : ''}${timelineSection(timeline)}${refusedSection(refused)}${good && goodSection(good)}${splitsSection(splits)}${policies.map((policy, i) => policySection(policy, i, good ? 'good clients' : 'all clients'))}${redisSection(redis)}`
}

/** The proposed limit, and whom it would refuse. */
function withProposal(report: WithProposal): Markup {
  const { caveats, good, redis, splits } = report
  return markup`${answer(report)}${navigation(contentsOfProposal(report))}
${proposalSections(report)}${good && goodSection(good)}${splitsSection(splits)}${caveats.length > 0 ? caveatsSection(caveats) : ''}${logSection(report)}${redisSection(redis)}`
}

function navigation(contents: readonly (readonly [id: string, text: string])[]): Markup {
  return markup`<nav aria-label="Sections"><ul>${contents.map(([id, text]) => markup`<li><a href="#${id}">${text}</a></li>`)}</ul></nav>`
}

function contentsOfProposal({ caveats, good }: WithProposal): [id: string, text: string][] {
  return [
    ['above', 'Refused clients'],
    ['below', 'Close clients'],
    ['limits', 'Limits'],
    ['document', 'Document'],
    ...(good ? [['good', 'Good clients'] as [string, string]] : []),
    ['splits', 'What would be refused'],
    ...(caveats.length > 0 ? [['caveats', 'Caveats'] as [string, string]] : []),
    ['log', 'Log'],
    ['redis', 'Cost in Redis'],
  ]
}

function headingOf({ proposal }: SimulationReport): string {
  return proposal ? 'Proposed rate limits' : 'Simulation of rate limits'
}

function titleOf(report: SimulationReport): string {
  const { firstMs, lastMs, lines } = report.log
  const span = lines > 0 ? `, ${timeText(firstMs)} to ${timeText(lastMs)} UTC` : ''
  return `${headingOf(report)}${span}`
}

function contents({ caveats, policies, good, against }: SimulationReport): [id: string, text: string][] {
  return [
    ...(against ? [['against', 'Comparison'] as [string, string]] : []),
    ...(caveats.length > 0 ? [['caveats', 'Caveats'] as [string, string]] : []),
    ['timeline', 'Timeline'],
    ['refused', 'Refused clients'],
    ...(good ? [['good', 'Good clients'] as [string, string]] : []),
    ['splits', 'What would be refused'],
    ...policies.map(({ name }, i): [string, string] => [`policy-${i + 1}`, `Policy ${name}`]),
    ['redis', 'Cost in Redis'],
  ]
}

function caveatsSection(caveats: readonly string[]): Markup {
  return markup`<section aria-labelledby="caveats"><h2 id="caveats">Caveats</h2>
<ul class="caveats">${caveats.map((sentence) => markup`<li>${sentence}</li>`)}</ul></section>
`
}

function timelineSection(timeline: Timeline): Markup {
  const { admitted, peaks } = timeline
  const numbered = peaks.map((peak, i) => ({ ...peak, number: i + 1 }))
  return markup`<section aria-labelledby="timeline"><h2 id="timeline">Timeline</h2>
${admitted.length === 0 ? markup`<p>There is nothing to show.</p>` : timelinePlot(timeline)}${
  peaks.length > 0
    ? table(
        'peaks',
        'Peaks',
        [
          { heading: 'Peak', cell: ({ number }) => number, isNumber: true },
          { heading: 'Begins (UTC)', cell: ({ atMs }) => markup`<span class="whole">${timeText(atMs)}</span>` },
          { heading: 'Requests', cell: ({ requests }) => grouped(requests), isNumber: true },
          { heading: 'Refused', cell: ({ refused }) => grouped(refused), isNumber: true },
          { heading: 'Share refused', cell: (peak) => percent(shareOf(peak.refused, peak.requests)), isNumber: true },
        ],
        numbered,
      )
    : ''
}</section>
`
}

function refusedSection(refused: SimulationReport['refused']): Markup {
  return markup`<section aria-labelledby="refused"><h2 id="refused">Clients that would be refused</h2>
${refused.length === 0 ? markup`<p>No client would be refused.</p>` : clientsTable('refused-clients', 'Clients with the most refusals', refused)}</section>
`
}

function goodSection({ seen, refused, absent }: NonNullable<SimulationReport['good']>): Markup {
  return markup`<section aria-labelledby="good"><h2 id="good">Good clients</h2>
<p>${seen === 0 ? 'No client marked good is in the log, so that this shows nothing about them.' : `${refused.length === 0 ? 'None' : grouped(refused.length)} of the ${counted(seen, 'client')} marked good would be refused.`}</p>
${absent.length === 0 ? '' : markup`<p>Good, but not in the log: ${absent.join(', ')}.</p>\n`}${refused.length === 0 ? '' : clientsTable('good-clients', 'Good clients that would be refused', refused)}</section>
`
}

function identitiesText({ identities }: SimulationReport): string {
  return identities === 'plain'
    ? 'Identities are those of the log: treat this file as personal data.'
    : 'Identities are pseudonyms, the same within this report and different in the next.'
}
