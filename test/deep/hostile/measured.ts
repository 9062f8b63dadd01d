import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { type ClientHttp2Session, connect } from 'node:http2'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from '../../support/built-core.js'
import type { HostileRequest } from './requests.js'

export interface Setup {
  readonly name: string
  /** The places that it reads of a request. */
  readonly reads: readonly string[]
  readonly port: number
}

/** A process with a bare server and others, whose CPU time is measured. */
export class MeasuredProcess {
  readonly name: string
  readonly bare: Setup
  readonly setups: readonly Setup[]
  readonly #child: ChildProcess
  readonly #isHttp2: boolean
  readonly #agents = new Map<number, Agent>()
  readonly #sessions = new Map<number, ClientHttp2Session>()

  private constructor(name: string, child: ChildProcess, bare: number, setups: readonly Setup[]) {
    this.name = name
    this.bare = { name: 'bare', reads: [], port: bare }
    this.setups = setups
    this.#child = child
    this.#isHttp2 = name.endsWith('HTTP/2')
  }

  static async start(name: string, file: 'server.js' | 'deciders.js'): Promise<MeasuredProcess> {
    ensureBuilt('core', 'express', 'koa', 'fastify', 'policies', 'prometheus', 'console', 'cli')
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), [name], {
      // Without the options of this process: servers run the built packages, not the source.
      execArgv: ['--disable-warning=SluiceWarning'],
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`${name}: the process ended with ${code} before it served`)
    })
    const [{ bare, setups }] = (await Promise.race([once(child, 'message'), ended])) as [
      { bare: number; setups: Setup[] },
    ]
    ended.catch(() => {})
    return new MeasuredProcess(name, child, bare, setups)
  }

  /** CPU time of the process for one of several equal sequential requests, in ms, and the status of the last one. */
  async cost({ port }: Setup, request: HostileRequest, times: number): Promise<{ ms: number; status: number }> {
    const before = await this.#cpuMs()
    let status = 0
    for (let i = 0; i < times; i++)
      status = await (this.#isHttp2 ? this.#askHttp2(port, request) : this.#ask(port, request))
    return { ms: ((await this.#cpuMs()) - before) / times, status }
  }

  stop(): void {
    for (const agent of this.#agents.values()) agent.destroy()
    for (const session of this.#sessions.values()) session.destroy()
    if (this.#child.connected) this.#child.disconnect()
  }

  async #cpuMs(): Promise<number> {
    this.#child.send('cpu')
    const [{ user, system }] = (await once(this.#child, 'message')) as [NodeJS.CpuUsage]
    return (user + system) / 1000
  }

  #ask(port: number, request: HostileRequest): Promise<number> {
    const { method, path, headers, body } = request
    let agent = this.#agents.get(port)
    if (!agent) {
      agent = new Agent({ keepAlive: true, maxSockets: 1 })
      this.#agents.set(port, agent)
    }
    return new Promise((resolve, reject) => {
      const sent = httpRequest(
        { host: '127.0.0.1', port, method, path, headers, agent, setHost: false },
        (response) => {
          response.resume().once('end', () => resolve(response.statusCode ?? 0))
        },
      )
      sent.once('error', (error: NodeJS.ErrnoException) => {
        const isClosed = /^(ECONNRESET|EPIPE)$/.test(error.code ?? '')
        // The server ended the keep-alive connection before it read the request.
        if (isClosed && sent.reusedSocket) resolve(this.#ask(port, request))
        // It answered, and closed the connection, while the body was still being sent.
        else if (isClosed && body !== undefined) resolve(0)
        else reject(error)
      })
      sent.end(body)
    })
  }

  #askHttp2(port: number, { method, path, headers }: HostileRequest): Promise<number> {
    let session = this.#sessions.get(port)
    if (!session || session.destroyed || session.closed) {
      session = connect(`http://127.0.0.1:${port}`)
      session.on('error', () => {})
      this.#sessions.set(port, session)
    }
    const stream = session.request({ ':method': method, ':path': path, ':authority': 'a.example.com', ...headers })
    return new Promise((resolve) => {
      let status = 0
      stream.once('response', (fields) => {
        status = Number(fields[':status'])
      })
      // For example characters that no header may have.
      stream.on('error', () => {})
      stream.resume().once('close', () => resolve(status))
      stream.end()
    })
  }
}

/** The cost of a request above a bare server, in ms of CPU time. */
export interface Measured {
  readonly request: HostileRequest
  readonly status: number
  readonly ms: number
}

/** The difference of medians of alternating rounds, so that garbage collections in a few rounds do not count. */
export async function difference(
  measured: MeasuredProcess,
  setup: Setup,
  request: HostileRequest,
  rounds: number,
  times: number,
): Promise<Measured> {
  const bare: number[] = []
  const own: number[] = []
  let status = 0
  for (let i = 0; i < rounds; i++) {
    bare.push((await measured.cost(measured.bare, request, times)).ms)
    const cost = await measured.cost(setup, request, times)
    own.push(cost.ms)
    status = cost.status
  }
  return { request, status, ms: median(own) - median(bare) }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number
}
