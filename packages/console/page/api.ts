/** The header that shows the session of a link, and where the tab keeps it. */
const SESSION = 'sluice-session'
const OWN_HEADERS = { 'Content-Type': 'application/json', 'sluice-console': '1' }

/** A request that the console did not serve, with its sentence. */
export class Refused extends Error {
  readonly status: number
  /** The problem document. */
  readonly more: Readonly<Record<string, unknown>>

  constructor(status: number, detail: string, more: Readonly<Record<string, unknown>> = {}) {
    super(detail)
    this.status = status
    this.more = more
  }
}

/** A request to the API: a POST where there is a body. @throws Refused */
export async function ask<Answer>(path: string, body?: object, signal?: AbortSignal): Promise<Answer> {
  const response = await send(path, body, signal)
  const answer = await response.json().catch(() => undefined)
  if (typeof answer === 'object' && answer !== null) return answer as Answer
  throw new Refused(502, 'Something between this page and the console answered in its place.')
}

/** The same, for an answer that is read as it comes. @throws Refused */
export async function send(path: string, body?: object, signal?: AbortSignal): Promise<Response> {
  // Relative, so that it works below any path, also that of a proxy.
  const url = new URL(`.${path}`, location.href)
  const session = sessionStorage.getItem(SESSION)
  const response = await fetch(url, {
    method: body ? 'POST' : 'GET',
    headers: { ...(body && OWN_HEADERS), ...(session && { [SESSION]: session }) },
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
    cache: 'no-store',
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error
    throw new Refused(0, 'The console cannot be reached.')
  })
  if (response.ok) return response
  const problem = await response.json().catch(() => ({}))
  throw new Refused(response.status, sentence(problem.detail ?? `the server answered ${response.status}`), problem)
}

/** Exchanges the secret of a link for a session of this tab. The address shows it no more, so that no history has it. */
export async function openLink(): Promise<void> {
  const secret = location.hash.slice(1)
  if (secret === '' || secret.startsWith('/')) return
  history.replaceState(null, '', '#/')
  const { session } = await ask<{ session: string }>('/api/session', { secret })
  sessionStorage.setItem(SESSION, session)
}

/** Text of the API as a sentence: it begins with a field and in lower case there, and ends without a point. */
export function sentence(given: string): string {
  const text = given.replace(/^(?:[\w.[\]-]+: )+/, '')
  return text === '' ? text : `${text[0]?.toUpperCase()}${text.slice(1)}${/[.!?:]$/.test(text) ? '' : '.'}`
}
