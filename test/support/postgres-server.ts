import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import { freePort } from '../../scripts/lib/ports.js'
import { root } from '../../scripts/lib/project.js'
import { adviceHere, find } from '../../scripts/lib/system-program.js'
import { PROGRAMS } from '../../scripts/programs.js'
import { type Leashed, startLeashed } from './leash.js'
import { HOST } from './redis-server.js'
import { ownDirectory, unprivileged } from './unprivileged.js'
import { until } from './until.js'

/** A test's own PostgreSQL on 127.0.0.1, with an empty database. Its data survives a restart. */
export class PostgresServer {
  readonly port: number
  readonly #data: string
  #process: Leashed

  constructor(process: Leashed, port: number, data: string) {
    this.#process = process
    this.port = port
    this.#data = data
  }

  /** As its superuser, who needs no password; the user `locked` does. */
  urlOf(user = 'postgres'): string {
    return `postgres://${user}@${HOST}:${this.port}/postgres`
  }

  get url(): string {
    return this.urlOf()
  }

  /** Runs statements on a connection of their own. */
  async query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
    const client = new Client(this.url)
    await client.connect()
    try {
      return (await client.query(text, values)).rows
    } finally {
      await client.end()
    }
  }

  /** `SIGKILL` ends it at once, with all connections; `SIGSTOP` makes it accept no connection. */
  kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    process.kill(this.#process.pid, signal)
  }

  /** Starts it again, with its data. */
  async restart(): Promise<void> {
    await this.#process.end()
    // The previous process may hold its memory for a moment.
    this.#process = await until('PostgreSQL starts again', () => launch(this.port, this.#data))
  }

  async stop(): Promise<void> {
    await this.#process.end()
    rmSync(this.#data, { recursive: true, force: true })
  }
}

/** Starts a real PostgreSQL within a second, or in some seconds the first time. Fails, never skips, without PostgreSQL. */
export async function startPostgres(): Promise<PostgresServer> {
  const data = ownDirectory('sluice-postgres-')
  copy(emptyDatabase(), data)
  const rules = ['host all locked 127.0.0.1/32 scram-sha-256', 'host all all 127.0.0.1/32 trust', 'local all all trust']
  writeFileSync(join(data, 'pg_hba.conf'), `${rules.join('\n')}\n`)
  for (let tries = 0; ; tries++) {
    const port = await freePort()
    try {
      return new PostgresServer(await launch(port, data), port, data)
    } catch (error) {
      if (tries < 5 && /could not bind|Address already in use/.test(String(error))) continue
      rmSync(data, { recursive: true, force: true })
      throw error
    }
  }
}

/** The folder of a new database, to be copied: creating one costs a second of computing. */
function emptyDatabase(): string {
  const initdb = binary('initdb')
  // A database belongs to its user, and to the version that created it.
  const key = [initdb, statSync(initdb).mtimeMs, process.getuid?.()].join()
  const templates = join(root, '.tmp/postgres')
  const template = join(templates, createHash('sha256').update(key).digest('hex').slice(0, 16))
  if (existsSync(template)) return template

  const created = ownDirectory('sluice-initdb-')
  // PostgreSQL refuses to run as root.
  const how = ['-D', created, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '-N']
  const [program, args] = unprivileged(initdb, ...how)
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: created })
  mkdirSync(templates, { recursive: true })
  const unfinished = mkdtempSync(join(templates, 'unfinished-'))
  copy(created, unfinished)
  rmSync(created, { recursive: true })
  try {
    renameSync(unfinished, template)
  } catch (error) {
    // Another process has created it meanwhile.
    rmSync(unfinished, { recursive: true })
    if (!existsSync(template)) throw error
  }
  return template
}

/** Copies the contents of a folder, with their owners and rights. */
function copy(from: string, to: string): void {
  execFileSync('cp', ['-Rp', `${from}/.`, to])
}

async function launch(port: number, data: string): Promise<Leashed> {
  // A folder for the socket, removed with the process; the data stays for the next one.
  const sockets = ownDirectory('sluice-socket-')
  const settings = {
    port,
    listen_addresses: HOST,
    unix_socket_directories: sockets,
    fsync: 'off',
    shared_buffers: '16MB',
    max_connections: 40,
    autovacuum: 'off',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const [program, args] = unprivileged(binary('postgres'), '-D', data, ...options)
  const server = await startLeashed(program, args, sockets)
  try {
    await until(
      'PostgreSQL accepts connections',
      async () => {
        if (/could not bind|FATAL: .*lock file|FATAL: .*shared memory/.test(server.errorText()))
          throw new CannotStart(server.errorText())
        const client = new Client({ host: HOST, port, user: 'postgres', database: 'postgres' })
        client.on('error', () => {})
        try {
          await client.connect()
          return true
        } finally {
          await client.end()
        }
      },
      { giveUpOn: CannotStart, everyMs: 50, withinMs: 60_000 },
    )
    return server
  } catch (error) {
    await server.end()
    throw new Error(`PostgreSQL did not start: ${server.errorText()}`, { cause: error })
  }
}

class CannotStart extends Error {}

/** `initdb` lies beside `postgres`, after following links. */
function binary(program: 'postgres' | 'initdb'): string {
  const found = find(PROGRAMS.postgres)
  if (found === undefined) throw new Error(adviceHere([PROGRAMS.postgres]))
  return join(dirname(realpathSync(found)), program)
}
