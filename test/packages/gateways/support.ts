import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ensureBuilt } from '../../support/built-core.js'
import { until } from '../../support/until.js'

const BIN = fileURLToPath(new URL('../../../packages/cli/bin/sluice.cjs', import.meta.url))

/** A file of examples/gateways. */
export const example = (path: string) => fileURLToPath(new URL(`../../../examples/gateways/${path}`, import.meta.url))

/** The settings of an example with other ports. Throws if one is not in it. */
export function withPorts(path: string, ports: Readonly<Record<number, number>>): string {
  let settings = readFileSync(example(path), 'utf8')
  for (const [from, to] of Object.entries(ports)) {
    if (!settings.includes(`:${from}`)) throw new Error(`${path} has no port ${from}`)
    settings = settings.replaceAll(`:${from}`, `:${to}`)
  }
  return settings
}

export interface RunningDecider {
  readonly url: string
  /** Sends a signal, and resolves to the exit code; null if the signal killed it. */
  end(signal?: NodeJS.Signals): Promise<number | null>
  /** The standard error so far. */
  stderr(): string
  /** The processes that it has started. */
  workers(): Promise<number[]>
}

const running = new Set<ChildProcess>()
// Leaves no server behind, however the tests end.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** The program as users install it, on a port of 127.0.0.1. */
export async function startDecider(
  port: number,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<RunningDecider> {
  ensureBuilt('core', 'policies', 'prometheus', 'console', 'cli')
  const { PATH = '' } = process.env
  // Tests do not wait for load balancers.
  const grace = args.includes('--grace') ? [] : ['--grace', '0s']
  const child = spawn(process.execPath, [BIN, 'serve', '--listen', `127.0.0.1:${port}`, ...grace, ...args], {
    env: { PATH, ...env },
  })
  running.add(child)
  let errors = ''
  let hasClosed = false
  const closed = once(child, 'close').then(([code]) => {
    hasClosed = true
    running.delete(child)
    return code as number | null
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  await until(
    'the decider serves',
    () => {
      if (hasClosed) throw new Ended(`ended: ${errors}`)
      return output.includes('sluice decides for')
    },
    { giveUpOn: Ended },
  )
  return {
    url: `http://127.0.0.1:${port}`,
    end(signal = 'SIGTERM') {
      child.kill(signal)
      return closed
    },
    stderr: () => errors,
    async workers() {
      const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid='])
      const all = stdout
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/).map(Number))
      return all.flatMap(([pid = 0, parent]) => (parent === child.pid ? [pid] : []))
    },
  }
}

class Ended extends Error {}

/** The app behind a gateway. */
export interface App {
  readonly port: number
  /** Requests that have reached it. */
  readonly seen: IncomingMessage[]
  stop(): Promise<void>
}

/** An app that responds with 200, and with 403 to `/forbidden`, and with the body that it received. */
export async function startApp(): Promise<App> {
  const seen: IncomingMessage[] = []
  const server = createServer((request, response) => {
    seen.push(request)
    response.statusCode = request.url === '/forbidden' ? 403 : 200
    response.setHeader('X-App', 'yes')
    request.pipe(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export interface Response {
  readonly status: number
  readonly head: string
  readonly body: string
  field(name: string): string | undefined
}

/** Sends these lines as a request over its own connection, and resolves to the response. */
export function send(
  port: number,
  line: string,
  headers: readonly string[] = [],
  body = '',
  { version = 'HTTP/1.1', host = ['Host: shop.example'] } = {},
): Promise<Response> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => {
      const hasLength = headers.some((line) => /^(content-length|transfer-encoding)/i.test(line))
      const length = body === '' || hasLength ? [] : [`Content-Length: ${body.length}`]
      socket.write(
        [`${line} ${version}`, ...host, 'Connection: close', ...length, ...headers, '', body].join('\r\n'),
        'latin1',
      )
    })
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk
    })
    socket.once('error', reject)
    socket.once('close', () => {
      const end = text.indexOf('\r\n\r\n')
      const head = text.slice(0, end)
      const field = (name: string) => new RegExp(`^${name}: (.*?)\\r?$`, 'im').exec(head)?.[1]
      resolve({ status: Number(head.split(' ')[1]), head, body: text.slice(end + 4), field })
    })
  })
}
