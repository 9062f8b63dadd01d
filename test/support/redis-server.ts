import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../../scripts/lib/ports.js'
import { type Leashed, startLeashed } from './leash.js'
import { until } from './until.js'

export const HOST = '127.0.0.1'

export interface RedisServerOptions {
  /** The port to listen on. @default a free port */
  readonly port?: number
  /** Further settings, as in redis.conf: `['cluster-enabled yes']`. */
  readonly settings?: readonly string[]
  /** Run as a Sentinel. */
  readonly sentinel?: boolean
}

/** A test's own Redis on 127.0.0.1, which stores nothing on disk and ends with the test. */
export class RedisServer {
  readonly port: number
  readonly #options: RedisServerOptions
  #process: Leashed
  #admin: Redis | undefined

  constructor(process: Leashed, port: number, options: RedisServerOptions) {
    this.#process = process
    this.port = port
    this.#options = options
  }

  get url(): string {
    return `redis://${HOST}:${this.port}`
  }

  get pid(): number {
    return this.#process.pid
  }

  /** Sends one command on the harness's own connection, past every store and proxy. */
  async call(command: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#connection().call(command, ...args.map(String))
  }

  /** The text of `INFO section` or of any other `field:value` report, as an object. */
  async fields(command: string, ...args: string[]): Promise<Record<string, string>> {
    const text = String(await this.call(command, ...args))
    return Object.fromEntries(
      text.split(/\r?\n/).flatMap((line) => {
        const colon = line.indexOf(':')
        return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)]] : []
      }),
    )
  }

  /** The server's clock, in whole ms. */
  async now(): Promise<number> {
    const [seconds, micros] = (await this.call('TIME')) as [string, string]
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
  }

  /** Every key and its remaining life in ms: -1 for a key without an expiry. */
  async lifetimes(): Promise<Map<string, number>> {
    const found = new Map<string, number>()
    let cursor = '0'
    do {
      const [next, keys] = (await this.call('SCAN', cursor, 'COUNT', 1000)) as [string, string[]]
      for (const key of keys) {
        const leftMs = Number(await this.call('PTTL', key))
        // -2: it expired between the two commands.
        if (leftMs !== -2) found.set(key, leftMs)
      }
      cursor = next
    } while (cursor !== '0')
    return found
  }

  /** The number of connected clients, without the harness's own. */
  async connections(): Promise<number> {
    const own = await this.call('CLIENT', 'ID')
    const list = String(await this.call('CLIENT', 'LIST'))
      .trim()
      .split('\n')
    return list.filter((line) => !line.startsWith(`id=${own} `)).length
  }

  /** Removes all data; scripts stay loaded. */
  async flush(): Promise<void> {
    await this.call('FLUSHALL')
  }

  /** Sends a signal: `SIGKILL` ends it at once, `SIGSTOP` makes it hang, `SIGCONT` lets it continue. */
  kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void {
    process.kill(this.pid, signal)
  }

  /** Ends this server if it still runs, and starts an empty one in its place. */
  async restart(): Promise<void> {
    await this.stop()
    this.#process = await launch(this.port, this.#options)
  }

  async stop(): Promise<void> {
    this.#admin?.disconnect()
    this.#admin = undefined
    await this.#process.end()
  }

  #connection(): Redis {
    if (!this.#admin || this.#admin.status === 'end') {
      this.#admin = new Redis<'legacy'>({ host: HOST, port: this.port, lazyConnect: true, retryStrategy: () => null })
      // Every command reports its own failure.
      this.#admin.on('error', () => {})
    }
    return this.#admin
  }
}

/** Starts a real redis-server in some 30 ms. Fails, never skips, without redis-server. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  for (let tries = 0; ; tries++) {
    const port = options.port ?? (await freePort())
    try {
      return new RedisServer(await launch(port, options), port, options)
    } catch (error) {
      // Another process took this port first: try the next, unless it has to be this one.
      if (!(error instanceof PortTaken) || options.port !== undefined || tries > 5) throw error
    }
  }
}

/** Another process listens on a port that was free a moment ago. */
export class PortTaken extends Error {}

async function launch(port: number, { settings = [], sentinel = false }: RedisServerOptions): Promise<Leashed> {
  const binary = redisBinary()
  const dir = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  const config = join(dir, 'redis.conf')
  const log = join(dir, 'redis.log')
  const own = [`port ${port}`, `bind ${HOST}`, `dir ${dir}`, `logfile ${log}`]
  const volatile = sentinel ? [] : ['save ""', 'appendonly no']
  writeFileSync(config, [...own, ...volatile, ...settings, ''].join('\n'))

  const server = await startLeashed(binary, [config, ...(sentinel ? ['--sentinel'] : [])], dir)
  const output = () => `${server.errorText()}${readIfThere(log)}`
  try {
    await until(
      `redis-server answers on port ${port}`,
      async () => {
        // The server on the port must be this very process: the port may belong to another program's server.
        if ((await processIdAt(port)) === server.pid) return true
        if (/Address already in use|Failed listening/i.test(output())) throw new PortTaken(`port ${port} is taken`)
        return false
      },
      { everyMs: 4, withinMs: 10_000, giveUpOn: PortTaken },
    )
    return server
  } catch (error) {
    const log = output()
    await server.end()
    if (error instanceof PortTaken) throw error
    throw new Error(`redis-server did not start on port ${port}:\n${log}`, { cause: error })
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** The pid of the Redis that listens on `port`; undefined without one. */
function processIdAt(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(port, HOST, () => socket.write('INFO server\r\n'))
    const end = () => {
      socket.destroy()
      const found = /process_id:(\d+)/.exec(text)
      resolve(found ? Number(found[1]) : undefined)
    }
    socket.setTimeout(1000, end).on('error', end).on('close', end)
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
      if (/process_id:\d+\r|^-/m.test(text)) end()
    })
  })
}

let known: string | undefined

function redisBinary(): string {
  const wanted = process.env.SLUICE_REDIS_SERVER || 'redis-server'
  if (wanted === known) return wanted
  try {
    execFileSync(wanted, ['--version'], { stdio: 'ignore' })
  } catch (cause) {
    throw new Error(
      `These tests need a real Redis 7, and ${JSON.stringify(wanted)} could not be run. Install it ` +
        '(Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis), ' +
        'or say where it is: SLUICE_REDIS_SERVER=/path/to/redis-server',
      { cause },
    )
  }
  known = wanted
  return wanted
}
