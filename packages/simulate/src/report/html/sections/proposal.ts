import { counted, durationText, grouped, percent } from '@sluice/core/internal'
import {
  type ClientAtLimit,
  type LimitStep,
  MAX_ABOVE,
  type Proposal,
  type ProposedLimit,
} from '../../../proposal/proposal.js'
import {
  basisOf,
  documentText,
  limitText,
  mainLimit,
  networkNote,
  resultOf,
  type WithProposal,
  windowName,
} from '../../proposal-text.js'
import { type Markup, markup } from '../markup.js'
import { movablePlot } from '../plot/movable.js'
import { type Column, table } from '../table.js'
import { spanText } from '../words.js'
import { namedClients } from './clients.js'
import { shareOf } from './overview.js'

/** The answer: the limit in one sentence and one number, and the plot in which it can be moved. */
export function answer(report: WithProposal): Markup {
  const { proposal } = report
  const main = mainLimit(proposal)
  const farthest = proposal.above.map(
    (client) =>
      markup`<code>${client.identity}</code>${networkNote(client)}, ${counted(client.worst, 'request')} per ${windowName(client.windowMs)}`,
  )
  return markup`<p class="answer"><strong>${grouped(main.limit)}</strong> requests per ${windowName(main.windowMs)} and ${main.counts === 'clients' ? 'client' : 'network'}</p>
<p class="lead">${resultOf(report)}</p>
${namedClients('Farthest above a limit', farthest, 'above')}${proposal.limits.length > 1 ? limitsList(proposal) : ''}<p>${basisOf(proposal)} As written, the <a href="#document">document</a> only counts: it begins in report mode. The log has ${spanText(report.log.lastMs - report.log.firstMs)}.</p>
${limitFigure(proposal, main, 0)}`
}

/** Who is above a limit, who is close, the limits, and the document. */
export function proposalSections(report: WithProposal): Markup {
  const { proposal } = report
  const main = mainLimit(proposal)
  const others = proposal.limits.filter((limit) => limit !== main)
  return markup`<section aria-labelledby="above"><h2 id="above">Clients that would be refused</h2>
${proposal.above.length === 0 ? markup`<p>No client would be refused.</p>` : clientsTable('above-clients', aboveCaption(report), proposal.above, ...refusedColumns(report))}</section>
<section aria-labelledby="below"><h2 id="below">Clients closest to a limit</h2>
${proposal.below.length === 0 ? markup`<p>No client is close.</p>` : clientsTable('below-clients', `The ${proposal.below.length} clients and networks that come closest to a limit, and that no limit refuses`, proposal.below, [], [])}</section>
<section aria-labelledby="limits"><h2 id="limits">Limits</h2>
${windowsTable(proposal)}${others.map(
  (limit, i) => markup`<details><summary>${sentence(limit)}: move it</summary>
${limitFigure(proposal, limit, i + 1)}</details>
`,
)}</section>
<section aria-labelledby="document"><h2 id="document">Document</h2>
<div class="scroll" role="region" tabindex="0" aria-label="The document as YAML"><pre><code>${documentText(proposal)
    .split('\n')
    .map((line) => markup`${line}\n`)}</code></pre></div></section>
`
}

/** Each limit of the document, in a sentence. */
function limitsList({ limits }: Proposal): Markup {
  return markup`<ul>${limits.map(
    (limit) => markup`<li>${sentence(limit)}: <a href="#above">${refusedOf(limit)}</a></li>
`,
  )}</ul>
`
}

function refusedOf({ refused, counts }: ProposedLimit): string {
  return `${counted(refused, counts === 'clients' ? 'client' : 'network')} above it`
}

function aboveCaption({ proposal: { above }, identities }: WithProposal): string {
  return `${identities === 'plain' ? '' : 'Names are pseudonyms: --identities plain shows addresses. '}${above.length === MAX_ABOVE ? `The first ${MAX_ABOVE} clients` : 'Clients'} and networks above a limit, the farthest first, each with the requests that this limit alone refuses. A request may be refused by that of its client and by that of its network.`
}

function limitFigure({ groups, clients }: Proposal, limit: ProposedLimit, i: number): Markup {
  const { counts, windowMs, paths } = limit
  const windows = groups.flatMap((group) => group.windows)
  const window = windows.find((each) => each.counts === counts && each.windowMs === windowMs && each.paths === paths)
  const all = window?.clients ?? clients
  return movablePlot({
    id: `limit-${i + 1}`,
    title: `Worst ${windowName(windowMs)} of each ${counts === 'clients' ? 'client' : 'network'}${paths === undefined ? '' : ` on ${paths}`}`,
    unit: `requests per ${windowName(windowMs)}`,
    limit: limit.limit,
    rank: window?.rank ?? [],
    steps: limit.steps,
    effectOf: (step) => effectText(step, limit, all),
  })
}

function effectText({ limit, refused, good }: LimitStep, proposed: ProposedLimit, all: number): string {
  const { counts, policy, windowMs } = proposed
  const noun = counts === 'clients' ? 'client' : 'network'
  const whom =
    refused === 0
      ? `none of ${counted(all, noun)}`
      : `${grouped(refused)} of ${counted(all, noun)} (${percent(refused / all)})`
  return `A limit of ${grouped(limit)} alone refuses ${whom}${good > 0 ? `, of which ${grouped(good)} ${good === 1 ? 'is' : 'are'} good` : ''}.${limit === proposed.limit ? '' : ` To use it, write limit: ${limit} for window: ${durationText(windowMs)} in policy ${policy}.`}`
}

function sentence(limit: ProposedLimit): string {
  const text = limitText(limit)
  return `Limit ${text}`
}

function clientsTable(
  id: string,
  caption: string,
  clients: readonly ClientAtLimit[],
  first: readonly Column<ClientAtLimit>[],
  last: readonly Column<ClientAtLimit>[],
): Markup {
  return table(
    id,
    caption,
    [
      {
        heading: 'Client',
        cell: (client) =>
          markup`<code>${client.identity}</code>${networkNote(client)}${client.isGood ? ' (good)' : ''}`,
      },
      ...first,
      {
        heading: 'Worst window',
        cell: ({ worst, windowMs }) => `${grouped(worst)} in ${durationText(windowMs)}`,
        isNumber: true,
      },
      { heading: 'Limit', cell: ({ limit }) => grouped(limit), isNumber: true },
      ...(clients.some(({ paths }) => paths !== undefined)
        ? [
            {
              heading: 'Paths',
              cell: ({ paths }: ClientAtLimit) => markup`<code class="whole">${paths ?? 'all'}</code>`,
            },
          ]
        : []),
      { heading: 'Requests', cell: ({ requests }) => grouped(requests), isNumber: true },
      ...last,
    ],
    clients,
  )
}

/** What the replay by the proposed document says of a client: its refusals, and details. */
function refusedColumns({ refused }: WithProposal): [Column<ClientAtLimit>[], Column<ClientAtLimit>[]] {
  const known = new Map(refused.map((client) => [`${client.policy} ${client.identity}`, client]))
  const foundFor = ({ policy, identity }: ClientAtLimit) => known.get(`${policy} ${identity}`)
  const count: Column<ClientAtLimit> = {
    heading: 'Refused',
    cell: (client) => grouped(foundFor(client)?.refused ?? 0),
    isNumber: true,
  }
  const details: Column<ClientAtLimit>[] = [
    {
      heading: 'Its paths',
      cell: (client) => foundFor(client)?.paths.map((path) => markup`<code class="path">${path}</code>`),
    },
    ...(refused.some(({ agent }) => agent !== undefined)
      ? [
          {
            heading: 'Agent',
            cell: (client: ClientAtLimit) => markup`<span class="agent">${foundFor(client)?.agent ?? '–'}</span>`,
          },
        ]
      : []),
  ]
  return [[count], details]
}

/** The windows of all paths, and those of other groups that have a limit. */
function windowsTable({ groups }: Proposal): Markup {
  const windows = groups.flatMap(({ windows }) => windows)
  const shown = windows.filter(({ paths, isProposed }) => isProposed || paths === undefined)
  return table(
    'windows',
    'Requests of clients in their worst windows',
    [
      { heading: 'Paths', cell: ({ paths }) => markup`<code class="whole">${paths ?? 'all'}</code>` },
      { heading: 'Of', cell: ({ counts }) => markup`<span class="whole">${counts}</span>` },
      { heading: 'In', cell: ({ windowMs }) => durationText(windowMs), isNumber: true },
      { heading: 'Half of them', cell: ({ median }) => grouped(median), isNumber: true },
      { heading: '99.9 %', cell: ({ p999 }) => grouped(p999), isNumber: true },
      { heading: 'Most', cell: ({ max }) => grouped(max), isNumber: true },
      { heading: 'Good ones', cell: ({ good }) => (good === undefined ? '–' : grouped(good)), isNumber: true },
      { heading: 'Limit', cell: ({ limit }) => (limit === undefined ? '–' : grouped(limit)), isNumber: true },
      {
        heading: 'Above it',
        cell: ({ refused, clients }) => `${grouped(refused)} (${percent(shareOf(refused, clients))})`,
        isNumber: true,
      },
      {
        heading: 'In the document',
        cell: ({ isProposed }) =>
          markup`<span class="whole">${isProposed ? 'yes' : 'no: those of the document refuse the same'}</span>`,
      },
    ],
    shown,
  )
}
