import type { UsedRow } from '../../src/figures/answers.js'
import type { ShownDocument } from '../../src/shown-document.js'
import type { Limit, PoliciesAnswer, PolicyDocument, SavedOverride } from '../answers.js'
import { useShell } from '../context.js'
import { useFigures } from '../live/figures.js'
import { useAsk, usePages } from '../live/use-ask.js'
import { Failure, Notice, PageHead, Section, Text } from '../parts/basics.js'
import { limitText, policyIn, share, whole } from '../parts/format.js'
import { OverrideTable } from '../parts/overrides.js'
import { More, Table } from '../parts/table.js'
import { Yaml } from '../parts/yaml.js'
import { addressOf, type Query } from '../router.js'
import { Bar } from './client.js'
import { type LimitRow, WhatIf } from './what-if.js'

export function Policies({ query }: { query: Query }) {
  const { latest } = useFigures()
  const policies = useAsk<PoliciesAnswer>('/api/policies', undefined, 10_000)
  const { answer } = policies
  const used = latest?.sum.used ?? []
  const isPending = !answer && !policies.error
  const inCode = (answer?.limiters ?? []).flatMap(({ name, limits, kinds }) =>
    rowsOf(name, name, limits, used).map((row) => ({ ...row, kinds })),
  )
  const inDocuments = (answer?.documents ?? []).map((document) => ({
    document,
    limits: document.policies.flatMap(({ name, limits }) => rowsOf(name, document.limiter, limits, used)),
  }))
  return (
    <>
      <PageHead title="Policies" about="Limits that this console was given, and how much of them decisions need." />
      <Failure of={policies} />
      {isPending && <p class="empty">One moment.</p>}
      {answer && answer.limiters.length === 0 && answer.documents.length === 0 && (
        <Notice>
          This console was given no limiters and no documents: name them in its options <code>limiters</code> and{' '}
          <code>policies</code>.
        </Notice>
      )}
      {answer && answer.limiters.length > 0 && (
        <Section title="Limiters">
          <LimitTable name="Limiters" query={query} limits={inCode} />
        </Section>
      )}
      {inDocuments.map((each) => (
        <Document key={`${each.document.limiter} ${each.document.version}`} {...{ ...each, query }} />
      ))}
      {latest && (
        <WhatIf rows={[...inCode, ...inDocuments.flatMap(({ limits }) => limits)]} processes={latest.processes} />
      )}
      {latest && !isPending && <UsedSection used={used} />}
    </>
  )
}

/** Limits of a limiter or a policy of a document, with the figures of each. Rows of a limiter have the names of its tiers. */
function rowsOf(policy: string, limiter: string, limits: readonly Limit[], used: readonly UsedRow[]): LimitRow[] {
  const own = used.filter((row) => row.policy === policy || (policy === limiter && policyIn(row.policy) === limiter))
  return limits.map((limit, place) => {
    const names = [limit.name, `${policy}-${limit.name}`, ...(limits.length === 1 ? [policy] : [])]
    return { limiter, policy, limit, place, used: own.find((row) => names.includes(row.limit)) }
  })
}

/** Whether a link to a limiter, or to a policy of a document or one of its tiers, leads to a row. */
function isMeant({ limiter, policy, tier }: Query, row: LimitRow): boolean {
  // Policies with options of their own are decided under a name of their own, as metrics have it.
  if (limiter === `${row.limiter}-${policyIn(row.policy)}`) return true
  if (limiter !== row.limiter || policy === undefined) return limiter === row.limiter
  if (tier !== undefined) return row.policy === `${policy}.${tier}`
  return row.policy === policy || row.policy.startsWith(`${policy}.`)
}

interface LimitTableProps {
  readonly name: string
  readonly limits: readonly LimitRow[]
  readonly query: Query
  readonly lines?: ShownDocument['lines'] | undefined
}

function LimitTable({ name, limits, query, lines }: LimitTableProps) {
  const numbered = limits.map((row, i) => ({ ...row, i }))
  const isUsed = limits.some(({ used }) => used)
  return (
    <Table
      name={name}
      rows={numbered}
      empty="It has no limits."
      keyOf={({ i }) => i}
      isMarked={(row) => isMeant(query, row)}
      columns={[
        { title: 'Policy', show: ({ policy }) => <Text>{policy}</Text>, sort: ({ policy }) => policy },
        { title: 'Limit', show: ({ limit }) => limitText(limit) },
        { title: 'Algorithm', show: ({ limit }) => limit.algorithm, sort: ({ limit }) => limit.algorithm },
        { title: 'Counts', show: ({ limit, kinds }) => <Text>{limit.kind ?? kinds?.join(', ')}</Text> },
        isUsed && {
          title: '90 % need at most',
          isNumber: true,
          show: ({ used }) => used && <Used part={used.p90} />,
          sort: ({ used }) => used && partOf(used.p90),
        },
        lines && {
          title: 'As YAML',
          isNumber: true,
          show: ({ limiter, policy, place }) => <LineLink document={limiter} line={lines[policy]?.[place]} />,
        },
      ]}
    />
  )
}

function LineLink({ document, line }: { document: string; line: number | undefined }) {
  if (line === undefined) return null
  return <a href={addressOf('policies', { document, line: String(line) })}>line {line}</a>
}

/** More than the whole limit is more than all of it. */
const partOf = (part: number | null): number => part ?? 2

/** Decisions needed up to this share of the limit. */
function Used({ part }: { part: number | null }) {
  return (
    <span class="used">
      <Bar share={part ?? 1} /> {part === null ? 'more than all' : share(part)}
    </span>
  )
}

function UsedSection({ used }: { used: readonly UsedRow[] }) {
  return (
    <Section title="How much of each limit decisions need">
      <p class="muted">Half of the decisions need at most the first share of the limit, and so on.</p>
      <Table
        name="Use of limits"
        rows={used}
        empty="No decision has been counted since these processes began."
        keyOf={({ policy, limit }) => `${policy} ${limit}`}
        columns={[
          { title: 'Policy', show: ({ policy }) => <Text>{policy}</Text>, sort: ({ policy }) => policy },
          { title: 'Limit', show: ({ limit }) => <Text>{limit}</Text>, sort: ({ limit }) => limit },
          {
            title: 'Decisions',
            isNumber: true,
            show: ({ decisions }) => whole(decisions),
            sort: ({ decisions }) => decisions,
          },
          ...(['p50', 'p90', 'p99'] as const).map((part) => ({
            title: `${part.slice(1)} %`,
            isNumber: true,
            show: (row: UsedRow) => <Used part={row[part]} />,
            sort: (row: UsedRow) => partOf(row[part]),
          })),
        ]}
      />
    </Section>
  )
}

interface DocumentProps {
  readonly document: PolicyDocument
  readonly limits: readonly LimitRow[]
  readonly query: Query
}

function Document({ document, limits, query }: DocumentProps) {
  const { limiter, version, error } = document
  const { has } = useShell()
  const { answer: shown } = useAsk<ShownDocument>(has('/api/document') ? '/api/document' : undefined, { limiter })
  return (
    <Section
      title={`Document of ${limiter}`}
      aside={
        <span class="muted">
          version <Text>{version.length > 16 ? `${version.slice(0, 12)}…` : version}</Text>
        </span>
      }
    >
      {error !== undefined && (
        <Notice tone="bad">
          Its last good version decides: <Text>{error}</Text>
        </Notice>
      )}
      <LimitTable name={`Limits of ${limiter}`} lines={shown?.lines} {...{ query, limits }} />
      {shown && <Yaml shown={shown} marked={query.document === limiter ? Number(query.line) : undefined} />}
      <p class="muted below">
        Limits are changed in the document: in its file, or by <code>sluice apply</code> for a saved one. The page of a
        client changes them for that client, and Changes takes a version back.
      </p>
      {has('/api/overrides') && <Overrides limiter={limiter} />}
    </Section>
  )
}

function Overrides({ limiter }: { limiter: string }) {
  const overrides = usePages<SavedOverride>('/api/overrides', { limiter })
  // Documents in files and code have none.
  if (overrides.error?.status === 501) return <p class="muted below">{overrides.error.message}</p>
  if (overrides.entries?.length === 0)
    return (
      <p class="muted below">No client has limits of its own. The page of a client can change them until a date.</p>
    )
  return (
    <>
      <h3>Overrides until a date</h3>
      <Failure of={overrides} />
      <OverrideTable
        name={`Overrides of ${limiter}`}
        overrides={
          overrides.entries?.map((override) => ({ ...override, limiter })) ?? (overrides.error ? [] : undefined)
        }
      />
      <More next={overrides.next} />
    </>
  )
}
