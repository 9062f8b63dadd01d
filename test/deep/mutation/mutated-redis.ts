import { createHash } from 'node:crypto'
import type { RedisClient } from '@sluice/core'
import { withSections } from '@sluice/lua-optimiser'
import { Redis } from 'ioredis'
import { monitor } from '../../support/monitor.js'
import { type Mutant, type Scripts, scriptsWith } from './mutants.js'

const sha1 = (source: string) => createHash('sha1').update(source).digest('hex')

/**
 * A script of the store: one of the build, followed by its chosen parts. Scripts for one charge begin with a line that
 * declares their parameters.
 */
type Name = string

const HEAD = /^local (?:P\d|PARAMS).*\n/

const originals = scriptsWith()

/** The parts of a script that the store may leave out. */
const partsOf = (script: string) => [...new Set(script.match(/(?<=^--@when )\w+$/gm))]

/** The script of this name, as the store composes it. */
function scriptOf(scripts: Scripts, name: Name): string {
  const [script = '', ...chosen] = name.split(' ')
  const source = scripts[script] as string
  return withSections(source, Object.fromEntries(partsOf(source).map((part) => [part, chosen.includes(part)])))
}

/** Every script of the build, with every combination of its parts. */
function namesOf(scripts: Scripts): Name[] {
  return Object.entries(scripts).flatMap(([script, source]) => {
    const parts = partsOf(source)
    return Array.from({ length: 1 << parts.length }, (_, choice) =>
      [script, ...parts.filter((_, i) => choice & (1 << i))].join(' '),
    )
  })
}

const nameOf = new Map(namesOf(originals).map((name) => [sha1(scriptOf(originals, name)), name]))

/**
 * A client for a store, whose server executes each script with a mutant in it instead of the original. The exchange happens
 * on the connection, without the store.
 */
export class MutatedRedis {
  readonly #url: string
  readonly #own: Redis
  #scripts = originals
  /** The used scripts of `#scripts`. */
  readonly #used = new Map<string, { sha: string; source: string; isLoaded: boolean }>()
  /** Scripts that begin with their parameters and were sent whole, by their SHA-1. */
  readonly #withHead = new Map<string, { head: string; name: Name | undefined }>()
  /** Called with the keys of an execution, once it is sent. */
  onRun: ((keys: readonly string[]) => void) | undefined
  /** Scripts executed since this was last cleared. */
  readonly ran = new Set<Name>()

  constructor(url: string) {
    this.#url = url
    this.#own = new Redis<'legacy'>(url, { retryStrategy: () => null, maxRetriesPerRequest: null })
    this.#own.on('error', () => {})
    // Every store on this client adds listeners.
    this.#own.setMaxListeners(0)
    this.load(undefined)
  }

  /** Loads this mutant for all later executions; undefined loads the original scripts. */
  load(mutant: Mutant | undefined): void {
    this.#scripts = scriptsWith(mutant)
    this.#used.clear()
  }

  /** Whether the mutant changes a script. */
  isChanged(name: Name): boolean {
    return scriptOf(this.#scripts, name) !== scriptOf(originals, name)
  }

  call(command: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#own.call(command, ...args)
  }

  /** The time of the server in ms. */
  async now(): Promise<number> {
    const [seconds, microseconds] = await this.#own.time()
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000)
  }

  /** The bytes of a value. */
  bytes(key: string): Promise<Buffer | null> {
    return this.#own.getBuffer(key)
  }

  /** Calls `onCommand` with each command of scripts and clients, until the caller ends that. */
  monitor(onCommand: (command: string[], isOfScript: boolean) => void): Promise<() => void> {
    return monitor(this.#url, onCommand)
  }

  async whenReady(): Promise<void> {
    await this.#own.ping()
  }

  close(): void {
    this.#own.disconnect()
  }

  /** A substitute for a client of ioredis; a store duplicates it, and sends everything on the duplicate. */
  client(): RedisClient {
    const own = this.#own
    const client = {
      options: {},
      get status() {
        return own.status
      },
      call: own.call.bind(own),
      on: (event: string, listener: () => void) => {
        own.on(event as 'ready', listener)
        // A store waits for this event before it reads the index of blocks, but this connection is shared.
        if (event === 'ready' && own.status === 'ready') setImmediate(listener)
      },
      once: own.once.bind(own),
      off: own.off.bind(own),
      duplicate: () => client,
      evalsha: () => {},
      disconnect: () => {},
      callBuffer: (command: string, [script = '', ...args]: string[]) => {
        if (command === 'EVALSHA') return this.#run(script, args)
        if (command !== 'EVAL') return own.callBuffer(command, script, ...args)
        const sha = sha1(script)
        const [head = ''] = HEAD.exec(script) ?? []
        if (head) this.#withHead.set(sha, { head, name: nameOf.get(sha1(script.slice(head.length))) })
        return this.#run(sha, args)
      },
    }
    return client
  }

  /** The text of a script with the mutant in it, to execute it elsewhere. */
  mutated(sha: string): string {
    return this.#scriptFor(sha).source
  }

  /** Executes a script by its name, without a store. Resolves to its reply, with every value as text. */
  async runNamed(name: Name, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const reply = await this.runForBytes(name, keys, args)
    return Array.isArray(reply) ? reply.map(String) : [String(reply)]
  }

  /** The same, with the reply in bytes. */
  runForBytes(name: Name, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.#run(sha1(scriptOf(originals, name)), [String(keys.length), ...keys, ...args.map(String)])
  }

  #run(sha: string, [count = '', ...rest]: string[]): Promise<unknown> {
    const script = this.#scriptFor(sha)
    // Never after a NOSCRIPT reply, as later commands would overtake it.
    const reply = script.isLoaded
      ? this.#own.callBuffer('EVALSHA', script.sha, count, ...rest)
      : this.#own.callBuffer('EVAL', script.source, count, ...rest)
    script.isLoaded = true
    this.onRun?.(rest.slice(0, Number(count)))
    return reply
  }

  #scriptFor(sha: string): { sha: string; source: string; isLoaded: boolean } {
    const { head, name } = this.#withHead.get(sha) ?? { head: '', name: nameOf.get(sha) }
    if (name === undefined) throw new Error(`lua/ and the embedded scripts differ: no script has sha1 ${sha}`)
    this.ran.add(name)
    let script = this.#used.get(sha)
    if (!script) {
      const source = head + scriptOf(this.#scripts, name)
      script = { source, sha: sha1(source), isLoaded: false }
      this.#used.set(sha, script)
    }
    return script
  }
}
