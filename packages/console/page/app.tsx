import { type ComponentChildren, Fragment } from 'preact'
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { About, PoliciesAnswer } from './answers.js'
import { type Shell, ShellContext } from './context.js'
import { figures } from './live/figures.js'
import { useAsk, useAway } from './live/use-ask.js'
import { Blocks } from './pages/blocks.js'
import { Changes } from './pages/changes.js'
import { Client } from './pages/client.js'
import { Lists } from './pages/lists.js'
import { Near } from './pages/near.js'
import { Offenders } from './pages/offenders.js'
import { Overview } from './pages/overview.js'
import { Policies } from './pages/policies.js'
import { TrafficPage } from './pages/traffic-page.js'
import { Notice, Text, Time } from './parts/basics.js'
import { ClientSearch } from './parts/client-search.js'
import { zone } from './parts/format.js'
import { type Place, usePlace } from './router.js'

const ABOUT_EVERY_MS = 5000
const SAY_MS = 6000

const PAGES = [
  { page: 'overview', title: 'Overview' },
  { page: 'traffic', title: 'Traffic' },
  { page: 'client', title: 'Client' },
  { page: 'policies', title: 'Policies' },
  { page: 'offenders', title: 'Offenders' },
  { page: 'near', title: 'Near a limit' },
  { page: 'blocks', title: 'Blocks and bans' },
  { page: 'lists', title: 'Lists' },
  { page: 'changes', title: 'Changes' },
] as const

export function App({ linkFailure }: { linkFailure?: string }) {
  const asked = useAsk<About>(linkFailure === undefined ? '/api/about' : undefined, undefined, ABOUT_EVERY_MS)
  useAway(asked.reload)
  const failure = linkFailure ?? (asked.error && !asked.answer ? asked.error.message : undefined)
  if (failure !== undefined) return <Refusal sentence={failure} />
  if (!asked.answer) return <p class="empty">One moment.</p>
  return <Frame about={asked.answer} lost={asked.error && { text: asked.error.message, since: asked.failedAt }} />
}

/** In place of everything: the console serves nothing to this page. */
function Refusal({ sentence }: { sentence: string }) {
  return (
    <main class="alone">
      <h1>Sluice console</h1>
      <Notice tone="bad">{sentence}</Notice>
      <p class="muted">
        A link of <code>sluice console</code> opens one session, once, within a minute, in one tab. A console within an
        application takes the session of that application: sign in there, and load this page again.
      </p>
    </main>
  )
}

interface FrameProps {
  readonly about: About
  readonly lost: { readonly text: string; readonly since: number | undefined } | undefined
}

function Frame({ about, lost }: FrameProps) {
  const place = usePlace()
  const { answer: policies } = useAsk<PoliciesAnswer>('/api/policies', undefined, 30_000)
  const { answer: document, error } = useAsk<{ paths: Readonly<Record<string, unknown>> }>('/api/openapi.json')
  const [dialog, setDialog] = useState<ComponentChildren>(null)
  const [said, say] = useSaid()
  const close = useCallback(() => setDialog(null), [])
  const shell = useMemo<Shell>(
    () => ({
      about,
      policies,
      mayAct: about.operator.may === 'act',
      has: (route) => (document ? Object.hasOwn(document.paths, route) : true),
      // Another one each time, also where the one before is only just closed.
      open: (next) => setDialog(<Fragment key={DIALOGS.opened++}>{next}</Fragment>),
      close,
      say,
    }),
    [about, policies, document, close, say],
  )
  const isReady = document !== undefined || error !== undefined
  const hasFigures = isReady && shell.has('/api/figures')
  useEffect(() => {
    if (hasFigures) figures.start()
  }, [hasFigures])
  return (
    <ShellContext.Provider value={shell}>
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <div class="frame">
        <Side about={about} page={place.page} />
        <div class="content">
          <div class="top">
            <ClientSearch />
          </div>
          <main class={lost || about.store.state === 'unavailable' ? 'old' : undefined}>
            {!lost && <Outage store={about.store} />}
            {lost && (
              <Notice tone="bad">
                {lost.text}{' '}
                {lost.since !== undefined && (
                  <>
                    Since <Time at={lost.since} />;{' '}
                  </>
                )}
                this page shows the state before.
              </Notice>
            )}
            {isReady && <PageAt key={place.page} place={place} />}
          </main>
          <footer>Times are in {zone()}.</footer>
        </div>
      </div>
      <p class={`said ${said ? 'shown' : ''}`} role="status">
        {said}
      </p>
      {dialog}
    </ShellContext.Provider>
  )
}

/** Told once, above every page. What the page shows is of before. */
function Outage({ store: { state, since, cause } }: { store: About['store'] }) {
  if (state === 'available') return null
  return (
    <Notice tone="bad">
      The store is away
      {since !== undefined && (
        <>
          {' '}
          since <Time at={since} />
        </>
      )}
      : nothing can be read or changed, and what this page shows is of before. Each process decides by its option{' '}
      <code>unavailable</code>; blocks and bans that it knows hold. {cause && <Text>Cause: {cause}.</Text>}
    </Notice>
  )
}

/** Not a link, as the hash is the place of the page. */
function skip() {
  document.querySelector<HTMLElement>('main h1')?.focus()
}

function useSaid(): [string, (text: string) => void] {
  const [said, setSaid] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setSaid(''), SAY_MS)
    return () => clearTimeout(timer)
  }, [said])
  return [said, setSaid]
}

function Side({ about: { operator, readOnly }, page }: { about: About; page: string }) {
  return (
    <header class="side">
      <a class="brand" href="#/">
        <img src="icon.svg" alt="" width="24" height="24" /> Sluice
      </a>
      <nav aria-label="Pages">
        <ul>
          {PAGES.map((each) => (
            <li key={each.page}>
              <a href={`#/${each.page}`} aria-current={each.page === page ? 'page' : undefined}>
                {each.title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <p class="operator">
        <Text>{operator.name}</Text>
        <span>{operator.may === 'act' ? 'may act' : readOnly ? 'read only' : 'may read'}</span>
      </p>
    </header>
  )
}

function PageAt({ place }: { place: Place }) {
  const title = PAGES.find(({ page }) => page === place.page)?.title
  const isFirst = useRef(FIRST.isFirst)
  useEffect(() => {
    document.title = `${title ?? 'No such page'} · Sluice console`
    // Whoever opens a page is told which one it is, but for the first.
    if (!isFirst.current) document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
    FIRST.isFirst = false
    scrollTo(0, 0)
  }, [title, place.identity])
  switch (place.page) {
    case 'overview':
      return <Overview query={place.query} />
    case 'traffic':
      return <TrafficPage query={place.query} />
    case 'client':
      return <Client identity={place.identity} id={place.query.id} />
    case 'policies':
      return <Policies query={place.query} />
    case 'offenders':
      return <Offenders />
    case 'near':
      return <Near />
    case 'blocks':
      return <Blocks />
    case 'lists':
      return <Lists query={place.query} />
    case 'changes':
      return <Changes query={place.query} />
    default:
      return (
        <>
          <h1 tabIndex={-1}>No such page</h1>
          <p>
            <a href="#/">The overview</a> is there.
          </p>
        </>
      )
  }
}

const FIRST = { isFirst: true }
const DIALOGS = { opened: 0 }
