import { useMemo, useRef } from 'preact/hooks'
import type { HistoryAnswer } from '../../src/figures/answers.js'
import type { Change, KnownRefusals, PageOf } from '../answers.js'
import { useShell } from '../context.js'
import { type Live, useFigures } from '../live/figures.js'
import { useAsk } from '../live/use-ask.js'
import { Failure, Notice, PageHead, Section } from '../parts/basics.js'
import { Chart } from '../parts/chart.js'
import { rate, share, whole } from '../parts/format.js'
import { KnownSpan, NotRecorded, RefusalTable } from '../parts/refusals.js'
import { isInMemory, StoreChip } from '../parts/store.js'
import { goWith, type Query } from '../router.js'
import { type Attention, attentionOf } from './attention.js'
import { firstIn, NoFigures } from './no-figures.js'
import { Outbound } from './outbound.js'
import { type RefusedSince, sinceOf } from './refused-since.js'
import { Traffic } from './send-traffic.js'
import { bodyOf, grouped, groupOf, RANGES, type Span, showSpan, spanOf, Zoom } from './span.js'

const REFUSALS_EVERY_MS = 3000
const SHOWN_REFUSALS = 12
const MINUTE_MS = 60_000

export function Overview({ query }: { query: Query }) {
  const { about, has, policies } = useShell()
  const live = useFigures()
  const refusals = useAsk<KnownRefusals>('/api/refusals', undefined, REFUSALS_EVERY_MS)
  const refusedSince = useRefusedSince(live)
  const attention = attentionOf({
    about,
    policies,
    figures: live.latest,
    refusedSince,
    refusals: refusals.answer?.refusals,
  })
  return (
    <>
      <PageHead title="Overview" about={<StoreChip store={about.store} />}>
        {has('/api/demo/traffic') && <Traffic />}
      </PageHead>
      <AttentionList all={attention} />
      <Tiles live={live} />
      <Curves {...{ live, query }} />
      {live.latest && live.latest.sum.outbound.length > 0 && <Outbound figures={live.latest} />}
      <Section
        title="Last refusals"
        aside={<KnownSpan since={refusals.answer?.knownSince} now={refusals.answeredAt} />}
      >
        <Failure of={refusals} />
        <RefusalTable
          name="Last refusals"
          refusals={refusals.answer?.refusals ?? (refusals.error ? [] : undefined)}
          max={SHOWN_REFUSALS}
          empty={
            refusals.error ? (
              'The last refusals are not known.'
            ) : (
              <NotRecorded since={refusals.answer?.knownSince} now={refusals.answeredAt} />
            )
          }
        />
      </Section>
    </>
  )
}

/** Since when the share of refusals needs attention. */
function useRefusedSince({ latest }: Live): RefusedSince | undefined {
  const since = useRef<RefusedSince | undefined>(undefined)
  if (latest) since.current = sinceOf(since.current, latest.sum.perSecond, latest.at)
  return since.current
}

function AttentionList({ all }: { all: readonly Attention[] }) {
  if (all.length === 0) return null
  return (
    <Section title="Needs attention">
      <ul class="attention">
        {all.map(({ key, tone, text }) => (
          <li key={key} class={tone}>
            {text}
          </li>
        ))}
      </ul>
    </Section>
  )
}

function Tiles({ live: { latest, roundTrip, problem } }: { live: Live }) {
  const { about } = useShell()
  if (!latest) return null
  const { perSecond, totals, waiting, permits, durations } = latest.sum
  const longest = `${whole(durations.bounds.at(-1) ?? 0)} ms`
  const { p50, p99, measured, isOfMinute } = roundTrip
  const half = p50 === null ? `half above ${longest}` : `half within ${p50} ms`
  const tiles = [
    { name: 'Decisions', value: rate(perSecond.decisions), of: 'a second' },
    {
      name: 'Refused',
      value: rate(perSecond.refused),
      of: perSecond.decisions > 0 ? `a second, ${share(perSecond.refused / perSecond.decisions)}` : 'a second',
      tone: perSecond.refused > 0 ? 'refused' : '',
    },
    ...(totals.reported > 0
      ? [{ name: 'Would be refused', value: rate(perSecond.reported), of: 'a second; not enforced' }]
      : []),
    {
      name: 'Decided alone',
      value: rate(perSecond.alone),
      of: 'a second, without the store',
      tone: perSecond.alone > 0 ? 'alone' : '',
    },
    { name: 'Waiting', value: whole(waiting), of: `${whole(permits)} permits held` },
    // Decisions in memory travel nowhere.
    ...(isInMemory(about.store)
      ? []
      : [
          {
            name: 'Round trip',
            value: measured === 0 ? '–' : p99 === null ? `> ${longest}` : `${p99} ms`,
            of: `99 %${measured === 0 ? ', none measured' : `; ${half}`}, ${isOfMinute ? 'last minute' : 'since the start'}`,
          },
        ]),
    {
      name: 'Processes',
      value: latest.from === 'process' ? '1' : whole(latest.processCount),
      of: latest.from === 'process' ? 'this one: in memory' : 'report figures',
    },
  ]
  return (
    <dl class={problem ? 'tiles old' : 'tiles'}>
      {tiles.map(({ name, value, of, tone = '' }) => (
        <div key={name} class={tone}>
          <dt>{name}</dt>
          <dd class="value">{value}</dd>
          <dd class="muted">{of}</dd>
        </div>
      ))}
    </dl>
  )
}

function Curves({ live, query }: { live: Live; query: Query }) {
  const { has } = useShell()
  if (live.isAbsent || !has('/api/figures')) {
    return (
      <Section title="Decisions and refusals">
        <Notice>This console is of a version without live figures. The other pages work without them.</Notice>
      </Section>
    )
  }
  const span = has('/api/figures/history') ? spanOf(query) : undefined
  return (
    <Section title="Decisions and refusals" aside={<Ranges query={query} />}>
      {live.problem && <Failure of={problemOf(live)} />}
      {span ? (
        <>
          <Zoom span={span} />
          <PastCurves range={span} zoom={showSpan} />
        </>
      ) : (
        <LiveCurves live={live} />
      )}
    </Section>
  )
}

function problemOf({ problem, latest }: Live) {
  const error = problem && Object.assign(new Error(problem.detail), { status: 503, more: {} })
  return { error, failedAt: problem?.since, answer: latest }
}

function Ranges({ query }: { query: Query }) {
  const { has } = useShell()
  const ranges = RANGES.filter(({ span }) => span === undefined || has('/api/figures/history'))
  return (
    <fieldset class="segments">
      <legend class="hidden">Span</legend>
      {ranges.map(({ name, span }) => (
        <label key={name}>
          <input
            type="radio"
            name="span"
            checked={span === query.span && query.from === undefined}
            onChange={() => goWith('overview', { span })}
          />
          <span>{name}</span>
        </label>
      ))}
    </fieldset>
  )
}

function LiveCurves({ live: { points, problem, latest } }: { live: Live }) {
  const hasReported = (latest?.sum.totals.reported ?? 0) > 0
  const curves = useMemo(
    () => [
      curve(
        'decisions a second',
        '--curve-1',
        points.map((point) => point.decisions),
        true,
      ),
      curve(
        'refused',
        '--curve-2',
        points.map((point) => point.refused),
        true,
      ),
      curve(
        'decided alone',
        '--curve-3',
        points.map((point) => point.alone),
      ),
      ...reportedCurve(
        points.map((point) => point.reported),
        hasReported,
      ),
    ],
    [points, hasReported],
  )
  const at = useMemo(() => points.map((point) => point.at), [points])
  if (points.length === 0 && !problem) return <p class="empty">Waiting for the first figures.</p>
  if (!latest) return null
  return <Chart name="Decisions and refusals a second, live" at={at} curves={curves} />
}

const curve = (name: string, colour: string, values: readonly (number | null)[], isFilled = false) => ({
  name,
  colour,
  values,
  isFilled,
})

/** Refusals that are not enforced, where there are any. */
const reportedCurve = (values: readonly (number | null)[], isAny = values.some((value) => (value ?? 0) > 0)) =>
  isAny ? [curve('would be refused', '--curve-4', values)] : []

interface PastCurvesProps {
  readonly range: Span
  /** Called with the part of the chart that the mouse marks, in ms since 1970. */
  zoom?(from: number, to: number): void
}

/** The figures of a span, with a line for each change in it. */
export function PastCurves({ range, zoom }: PastCurvesProps) {
  const { has, about } = useShell()
  const group = groupOf(range)
  const history = useAsk<HistoryAnswer>('/api/figures/history', bodyOf(range, group), MINUTE_MS / 2)
  const changes = useAsk<PageOf<Change>>(has('/api/changes') && about.features.changes ? '/api/changes' : undefined, {
    max: 100,
  })
  const { answer } = history
  const each = group > 1 ? `in ${group} ${range.step}s` : range.step === 'hour' ? 'an hour' : 'a minute'
  const curves = useMemo(() => (answer ? pastCurves(answer, group, each) : []), [answer, group, each])
  const at = useMemo(() => answer?.at.filter((_, i) => i % group === 0) ?? [], [answer, group])
  const marks = useMemo(() => changes.answer?.entries.map(({ at }) => at) ?? [], [changes.answer])
  return (
    <>
      <Failure of={history} />
      {answer && range.to !== undefined && firstIn(answer) === undefined ? (
        <NoFigures to={range.to} />
      ) : answer ? (
        <Chart name={`Decisions and refusals ${each}`} {...{ at, curves, marks, zoom }} />
      ) : (
        !history.error && <p class="empty">One moment.</p>
      )}
      {marks.length > 0 && <p class="muted">A dashed line is a change by an operator.</p>}
      {answer?.notes.map((note) => (
        <Notice key={note}>{note}</Notice>
      ))}
    </>
  )
}

/** Steps without a process have no figures, which is not the same as no decision. */
function pastCurves(
  { step, at, now, processes, decisions, refused, reported, alone }: HistoryAnswer,
  group: number,
  each: string,
) {
  const stepMs = step === 'minute' ? MINUTE_MS : 60 * MINUTE_MS
  const reporting = grouped(processes, group)
  // What is not over would look like a fall.
  const isKnown = (i: number) => reporting[i] !== 0 && (at[i * group] ?? 0) + group * stepMs <= now
  const known = (values: readonly number[]) => grouped(values, group).map((value, i) => (isKnown(i) ? value : null))
  return [
    curve(`decisions ${each}`, '--curve-1', known(decisions), true),
    curve('refused', '--curve-2', known(refused), true),
    curve('decided alone', '--curve-3', known(alone)),
    ...reportedCurve(known(reported)),
  ]
}
