import type { ComponentChildren } from 'preact'
import type { TrafficAnswer, TrafficEntry, TrafficFilter, TrafficTop } from '../../src/traffic/answers.js'
import { useShell } from '../context.js'
import { useAsk } from '../live/use-ask.js'
import { Failure, Notice, PageHead, Section, Text, Time, Who, WhoText } from '../parts/basics.js'
import { Choice } from '../parts/dialog.js'
import { counted, policyIn, share, whole } from '../parts/format.js'
import { outcomeText } from '../parts/refusals.js'
import { Table } from '../parts/table.js'
import { goWith, type Query } from '../router.js'
import { LiveTail } from './live-tail.js'

const MINUTE_MS = 60_000
const EVERY_MS = 10_000
const SPANS = [
  ['15m', 'the last 15 minutes', 15],
  ['1h', 'the last hour', 60],
  ['6h', 'the last 6 hours', 360],
  ['24h', 'the last 24 hours', 1440],
] as const
const ORDERS = [
  ['decisions', 'most decisions'],
  ['refused', 'most refusals'],
] as const
/** The outcomes that can be chosen before any is seen. */
const OUTCOMES = ['admitted', 'refused', 'limited', 'banned', 'blocked', 'denied'] as const
const EVERY = ''
/** The part of a number that may be missing where its share is shown. */
const SURE = 0.02
type Field = keyof TrafficFilter
const FIELDS: readonly Field[] = ['policy', 'reason', 'path', 'network', 'client']
/** Those without a field of their own above the tables. */
const CHOSEN: readonly Field[] = ['path', 'network', 'client']

/** The filter in an address: a client stands there as a random id. */
function filterIn(query: Query): TrafficFilter {
  return Object.fromEntries(FIELDS.flatMap((field) => (query[field] ? [[field, query[field]]] : [])))
}

export function TrafficPage({ query }: { query: Query }) {
  const [span, , minutes] = SPANS.find(([name]) => name === query.span) ?? SPANS[0]
  const by = query.by === 'refused' ? 'refused' : 'decisions'
  const filter = filterIn(query)
  // Rounded, so that a minute has one question.
  const to = Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS
  const found = useAsk<TrafficAnswer>('/api/traffic', { from: to - minutes * MINUTE_MS, to, by, ...filter }, EVERY_MS)
  const move = (part: Readonly<Record<string, string | undefined>>) => goWith('traffic', { ...query, ...part })
  const policies = usePolicies(found.answer, filter.policy)
  const outcomes = namesOf(OUTCOMES, found.answer?.reasons, filter.reason)
  return (
    <>
      <PageHead
        title="Traffic"
        about="Where requests come from. Choose a value, and the page shows its requests alone."
      />
      <div class="filters">
        <Choice
          label="Policy"
          value={filter.policy ?? EVERY}
          of={[[EVERY, 'every policy'], ...policies.map((name) => [name, name] as const)]}
          set={(next) => move({ policy: next || undefined })}
        />
        <Choice
          label="Outcome"
          value={filter.reason ?? EVERY}
          of={[[EVERY, 'every outcome'], ...outcomes.map((name) => [name, outcomeText(name)] as const)]}
          set={(next) => move({ reason: next || undefined })}
        />
        <Choice
          label="Span"
          value={span}
          of={SPANS.map(([name, text]) => [name, text])}
          set={(next) => move({ span: next })}
        />
        <Choice label="Order" value={by} of={ORDERS} set={(next) => move({ by: next })} />
      </div>
      <Chosen filter={filter} client={found.answer?.client} drop={(field) => move({ [field]: undefined })} />
      <Failure of={found} />
      {found.error?.status !== 501 && <LiveTail key={JSON.stringify(filter)} filter={filter} />}
      {found.error?.status !== 501 && <Tops answer={found.answer} filter={filter} choose={move} by={by} />}
    </>
  )
}

/** Names that are known beforehand, those that an answer has, and the one that is chosen. */
function namesOf(known: readonly string[], seen: TrafficTop | undefined, chosen: string | undefined): string[] {
  const all = [...known, ...(seen?.entries ?? []).map(({ value }) => value), ...(chosen === undefined ? [] : [chosen])]
  return [...new Set(all)]
}

/** The policies of documents, limiters in code, and others that have decided. */
function usePolicies(answer: TrafficAnswer | undefined, chosen: string | undefined): string[] {
  const { policies } = useShell()
  const ofDocuments = policies?.documents.flatMap((each) => each.policies) ?? []
  const names = ofDocuments.map(({ name }) => policyIn(name))
  return namesOf([...names, ...(policies?.limiters ?? []).map(({ name }) => name)], answer?.policies, chosen)
}

interface ChosenProps {
  readonly filter: TrafficFilter
  readonly client: TrafficAnswer['client']
  drop(field: Field): void
}

const NAMES: Readonly<Record<Field, string>> = {
  policy: 'Policy',
  reason: 'Outcome',
  path: 'Path',
  network: 'Network',
  client: 'Client',
}

function Chosen({ filter, client, drop }: ChosenProps) {
  const fields = CHOSEN.filter((field) => filter[field] !== undefined)
  if (fields.length === 0) return null
  const textOf = (field: Field): ComponentChildren => {
    if (field !== 'client') return <Text>{filter[field]}</Text>
    return client ? <Who {...client} /> : client === null ? 'not known any more' : 'one moment'
  }
  return (
    <ul class="chosen" aria-label="Filters">
      {fields.map((field) => (
        <li key={field}>
          <span class="muted">{NAMES[field]}</span> {textOf(field)}{' '}
          <button type="button" class="quiet" onClick={() => drop(field)}>
            Remove<span class="hidden"> the filter by {NAMES[field].toLowerCase()}</span>
          </button>
        </li>
      ))}
    </ul>
  )
}

interface TopsProps {
  readonly answer: TrafficAnswer | undefined
  readonly filter: TrafficFilter
  readonly by: 'decisions' | 'refused'
  choose(part: TrafficFilter): void
}

function Tops({ answer, filter, by, choose }: TopsProps) {
  const { about } = useShell()
  if (answer?.processes === 0) {
    return (
      <Notice>
        No process has recorded traffic in this span.{' '}
        {about.features.traffic ? (
          'No request was decided.'
        ) : (
          <>
            Set <code>traffic: true</code> in <code>consoleFor</code>; processes without a console call{' '}
            <code>recordTraffic(store)</code>.
          </>
        )}
      </Notice>
    )
  }
  const parts = { filter, choose, by }
  return (
    <>
      {answer && (
        <p class="muted">
          {Object.keys(filter).length > 0 && 'The lists show what fits the filters. All traffic, without them: '}
          {counted(answer.decisions, 'decision')} in all since <Time at={answer.from} />, {whole(answer.refused)} of
          them refused, by {whole(answer.processes)} {answer.processes === 1 ? 'process' : 'processes'} that recorded in
          this time. A request has several decisions where limiters, or policies with lists of their own, decide apart.
        </p>
      )}
      {answer?.notes.map((note) => (
        <Notice key={note}>{note}</Notice>
      ))}
      <div class="tops">
        <Top title="Clients" field="client" of={answer?.clients} {...parts} />
        <Top title="Networks" field="network" of={answer?.networks} {...parts} />
        <Top title="Paths" field="path" of={answer?.paths} {...parts} />
        <Top title="Policies" field="policy" of={answer?.policies} {...parts}>
          {answer && decisionsIn(answer.policies) > answer.decisions && (
            <p class="muted below">A request counts for each policy that decided it.</p>
          )}
        </Top>
        <Top title="Outcomes" field="reason" of={answer?.reasons} {...parts} />
      </div>
    </>
  )
}

const decisionsIn = ({ entries }: TrafficTop): number => entries.reduce((sum, { decisions }) => sum + decisions, 0)

interface TopProps extends Omit<TopsProps, 'answer'> {
  readonly title: string
  readonly field: Field
  readonly of: TrafficTop | undefined
  readonly children?: ComponentChildren
}

function Top({ title, field, of, filter, choose, children }: TopProps) {
  return (
    <Section title={title}>
      <Table
        name={title}
        rows={of?.entries}
        empty="None in this span."
        keyOf={({ value }) => value}
        isNarrow
        columns={[
          {
            title: NAMES[field],
            show: (entry) => (
              <button
                type="button"
                class="choose"
                aria-pressed={filter[field] === entry.value}
                onClick={() =>
                  choose({ [field]: filter[field] === entry.value ? undefined : entry.value } as TrafficFilter)
                }
              >
                <Value field={field} entry={entry} />
              </button>
            ),
          },
          {
            title: 'Decisions',
            isNumber: true,
            show: ({ decisions }) => whole(decisions),
            sort: ({ decisions }) => decisions,
          },
          {
            title: 'Refused',
            isNumber: true,
            sort: ({ refused }) => refused,
            show: ({ decisions, refused }) =>
              // Both may be too low: a share of them says something only where that is little.
              refused === 0 || of === undefined || of.error > decisions * SURE
                ? whole(refused)
                : `${whole(refused)} (${share(refused / Math.max(decisions, 1))})`,
          },
          field === 'client' && {
            title: 'Page of the client',
            isHidden: true,
            show: ({ client }) => client && <Who {...client} text="Open" />,
          },
          field === 'network' && {
            title: 'Page of the network',
            isHidden: true,
            show: ({ value }) => <Who kind="ip" value={value} text="Open" />,
          },
        ]}
      />
      {of !== undefined && of.entries.length > 0 && of.error > 0 && (
        <p class="muted below">
          {of.error > Math.max(...of.entries.map(({ decisions }) => decisions))
            ? `These are some of the ${title.toLowerCase()}: others may have more.`
            : `Each number may be up to ${whole(of.error)} too low; others may be missing.`}
        </p>
      )}
      {children}
    </Section>
  )
}

function Value({ field, entry: { value, client } }: { field: Field; entry: TrafficEntry }) {
  if (field === 'reason') return <>{outcomeText(value)}</>
  if (field === 'network') {
    const [address, bits] = value.split('/', 2)
    return (
      <bdi>
        {address}
        {/* A line that is too long breaks here. */}
        <wbr />/{bits}
      </bdi>
    )
  }
  if (field !== 'client') return <Text>{value}</Text>
  return client ? <WhoText {...client} /> : <>forgotten client</>
}
