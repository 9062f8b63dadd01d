import { type Sample, samplesOf } from './exposition.js'

/** Most bytes that are read of one response: a server with many metrics of its own sends some hundred kilobytes. */
const MAX_BYTES = 16 * 1024 * 1024
/** Longest wait for one response, in ms. */
const ANSWER_MS = 5000

/** The samples of a server, or why it showed none, in a clause. */
export type Scraped = { readonly samples: readonly Sample[] } | { readonly failure: string }

/** Requests the metrics of one server. Never rejects. */
export async function scrape(url: URL, stop: AbortSignal): Promise<Scraped> {
  try {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(ANSWER_MS)])
    // Redirects are not followed: only the address that was typed is contacted.
    const response = await fetch(plain(url), { signal, redirect: 'error', headers: headersFor(url) })
    if (!response.ok) {
      await response.body?.cancel()
      return { failure: `it answers ${response.status}` }
    }
    return { samples: samplesOf(await boundedText(response), 'sluice_') }
  } catch (error) {
    return { failure: reasonOf(error) }
  }
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw new Error(`more than ${MAX_BYTES / 1024 / 1024} MiB`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text
}

/** `fetch` takes no credentials in a URL. */
function plain(url: URL): URL {
  const without = new URL(url)
  without.username = ''
  without.password = ''
  return without
}

function headersFor({ username, password }: URL): Record<string, string> {
  const accept = { accept: 'text/plain;version=0.0.4' }
  if (username === '' && password === '') return accept
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { ...accept, authorization: `Basic ${Buffer.from(pair).toString('base64')}` }
}

function reasonOf(error: unknown): string {
  const { name, message, cause } = error as Error & { cause?: { code?: string; message?: string } }
  if (name === 'TimeoutError') return `no answer within ${ANSWER_MS / 1000} s`
  return cause?.code ?? cause?.message ?? message
}
