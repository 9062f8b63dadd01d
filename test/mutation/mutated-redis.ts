import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import { type Mutant, type Scripts, scriptsWith } from './mutants.js'

const sha1 = (source: string) => createHash('sha1').update(source).digest('hex')

/** The scripts that the store may ask for, by the name it knows them by, `decide` in every choice of its parts. */
function variants({ decide, block }: Scripts): Map<string, string> {
  const pieces = decide.split(/^--@when (\w+)\n([\s\S]*?)^--@end\n/gm)
  // Text, then the name of a part and its text, then text, and so on.
  const parts = pieces.filter((_, i) => i % 3 === 1)
  const sources = new Map([['block', block]])
  for (let chosen = 0; chosen < 1 << parts.length; chosen++) {
    const source = pieces.filter((_, i) => i % 3 === 0 || (i % 3 === 2 && chosen & (1 << ((i - 2) / 3))))
    sources.set(String(chosen), source.join(''))
  }
  return sources
}

const originals = variants(scriptsWith())
const nameOf = new Map([...originals].map(([name, source]) => [sha1(source), name]))

/**
 * A client to make a store of, whose server runs each script with a mutant in it in place of the one
 * that the store asks for. Nothing in the store knows: the exchange happens on the wire.
 */
export class MutatedRedis {
  readonly #own: Redis
  #scripts = new Map<string, { sha: string; source: string; isLoaded: boolean }>()
  /** Called with the keys of a run, once it is sent. */
  onRun: ((keys: readonly string[]) => void) | undefined
  /** Scripts that were run since this was last emptied. */
  readonly ran = new Set<string>()

  constructor(url: string) {
    this.#own = new Redis(url, { retryStrategy: () => null, maxRetriesPerRequest: null })
    this.#own.on('error', () => {})
    // Every store made of it listens.
    this.#own.setMaxListeners(0)
    this.load(undefined)
  }

  /** From now on this mutant runs; none: the scripts as they are. */
  load(mutant: Mutant | undefined): void {
    const sources = variants(scriptsWith(mutant))
    this.#scripts = new Map(
      [...sources].map(([name, source]) => [name, { source, sha: sha1(source), isLoaded: false }] as const),
    )
  }

  /** Whether a script is not what it was. */
  isChanged(script: string): boolean {
    return this.#scripts.get(script)?.source !== originals.get(script)
  }

  call(command: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#own.call(command, ...args)
  }

  async whenReady(): Promise<void> {
    await this.#own.ping()
  }

  close(): void {
    this.#own.disconnect()
  }

  /** What the store takes for a client of ioredis; it makes a duplicate, and sends all on that. */
  client(): unknown {
    const own = this.#own
    const client = {
      options: {},
      get status() {
        return own.status
      },
      on: own.on.bind(own),
      once: own.once.bind(own),
      off: own.off.bind(own),
      duplicate: () => client,
      evalsha: () => {},
      disconnect: () => {},
      call: (command: string, args: string[]) => (command === 'EVALSHA' ? this.#run(args) : own.call(command, ...args)),
    }
    return client
  }

  #run([sha = '', count = '', ...rest]: string[]): Promise<unknown> {
    const name = nameOf.get(sha)
    const script = name === undefined ? undefined : this.#scripts.get(name)
    if (name === undefined || !script)
      throw new Error(`lua/ and the embedded scripts differ: no script has sha1 ${sha}`)
    this.ran.add(name)
    // Never by way of NOSCRIPT: what is sent meanwhile would overtake.
    const reply = script.isLoaded
      ? this.#own.call('EVALSHA', script.sha, count, ...rest)
      : this.#own.call('EVAL', script.source, count, ...rest)
    script.isLoaded = true
    this.onRun?.(rest.slice(0, Number(count)))
    return reply
  }
}
