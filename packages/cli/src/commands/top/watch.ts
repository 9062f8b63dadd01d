import { setTimeout as sleep } from 'node:timers/promises'
import { type Figures, figuresOf, type Seen } from './figures.js'
import { scrape } from './scrape.js'

/** One look at all servers. */
interface Look {
  readonly servers: ReadonlyMap<string, Seen>
  /** Servers that did not respond, and why, in a clause. */
  readonly failures: ReadonlyMap<string, string>
}

/** The activity between two consecutive looks. */
export interface Period extends Figures {
  /** Servers that responded. */
  readonly answered: number
  readonly failures: ReadonlyMap<string, string>
}

/** Servers are named without possible secrets: credentials and parameters. */
function nameOf({ host, pathname }: URL): string {
  return host + pathname
}

async function look(urls: readonly URL[], stop: AbortSignal): Promise<Look> {
  const servers = new Map<string, Seen>()
  const failures = new Map<string, string>()
  await Promise.all(
    urls.map(async (url) => {
      const scraped = await scrape(url, stop)
      if ('failure' in scraped) failures.set(nameOf(url), scraped.failure)
      else servers.set(url.href, { atMs: performance.now(), samples: scraped.samples })
    }),
  )
  return { servers, failures }
}

/**
 * Looks at the servers every `everyMs`, until `stop` or after `count` periods.
 *
 * @throws Error where no server responds to the first look
 */
export async function* watch(
  urls: readonly URL[],
  { everyMs, count, stop }: { everyMs: number; count: number; stop: AbortSignal },
): AsyncGenerator<Period> {
  let before = await look(urls, stop)
  if (before.servers.size === 0 && !stop.aborted) {
    throw new Error([...before.failures].map(([name, why]) => `${name} shows no metrics: ${why}`).join('\n'))
  }
  for (let n = 0; n < count && !stop.aborted; n++) {
    await sleep(everyMs, undefined, { signal: stop }).catch(() => {})
    if (stop.aborted) return
    const after = await look(urls, stop)
    if (stop.aborted) return
    yield { ...figuresOf(before.servers, after.servers), answered: after.servers.size, failures: after.failures }
    // Once a server responds again, it is compared with its last metrics.
    before = { ...after, servers: new Map([...before.servers, ...after.servers]) }
  }
}
