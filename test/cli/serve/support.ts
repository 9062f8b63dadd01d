import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@sluice/cli'
import { afterAll, afterEach } from 'vitest'
import { until } from '../../support/until.js'

let folder = ''
let files = 0
const running = new Set<Decider>()

/**
 * Called once per test file: deciders stop after the test that started them, and documents are removed after the file.
 */
export function endWithTests(): void {
  folder = mkdtempSync(join(tmpdir(), 'sluice-serve-'))
  const own = folder
  afterEach(async () => {
    for (const decider of running) await decider.stop()
  })
  afterAll(() => rmSync(own, { recursive: true }))
}

/** A file with this text, removed after the tests of the file. */
export function fileOf(text: string, ending = 'yaml'): string {
  const path = join(folder, `${files++}.${ending}`)
  writeFileSync(path, text)
  return path
}

/** A document with these policies in YAML, below `policies:`. */
export const documentOf = (policies: string) => `version: 1\npolicies:\n${policies.replace(/^/gm, '  ')}\n`

export const THREE = documentOf('all: { limits: [{ limit: 3, window: 1m }] }')

export interface Decider {
  readonly port: number
  readonly url: string
  readonly stdout: string
  readonly stderr: string
  /** Stops the decider, and resolves to its exit code. */
  stop(): Promise<number>
}

/** Starts a command line that is expected to serve; the decider stops after the test. */
export async function serving(args: readonly string[], env: Record<string, string> = {}): Promise<Decider> {
  // Tests do not wait for load balancers.
  const started = start(args.includes('--grace') ? args : [...args, '--grace', '0s'], env)
  const line = await until(
    'the decider serves',
    () => {
      if (started.hasEnded()) throw new Ended(`ended: ${started.texts.stderr}`)
      return /on (https?):\/\/\S+:(\d+),/.exec(started.texts.stdout)
    },
    { giveUpOn: Ended },
  )
  const decider: Decider = {
    port: Number(line[2]),
    url: `${line[1]}://127.0.0.1:${line[2]}`,
    get stdout() {
      return started.texts.stdout
    },
    get stderr() {
      return started.texts.stderr
    },
    stop() {
      running.delete(decider)
      started.stop()
      return started.code
    },
  }
  running.add(decider)
  return decider
}

class Ended extends Error {}

/** The exit code and output of a command line that is expected to fail. */
export async function refused(args: readonly string[], env: Record<string, string> = {}) {
  const { code, texts } = start(args, env)
  return { code: await code, ...texts }
}

function start(args: readonly string[], env: Record<string, string>) {
  const texts = { stdout: '', stderr: '' }
  let stop = () => {}
  let hasEnded = false
  const output = (name: keyof typeof texts) => ({
    write: (text: string) => {
      texts[name] += text
    },
  })
  const code = run(['serve', ...args], {
    env,
    stdout: output('stdout'),
    stderr: output('stderr'),
    version: '0',
    untilStopped: () =>
      new Promise((resolve) => {
        stop = resolve
      }),
  }).finally(() => {
    hasEnded = true
  })
  return { texts, code, stop: () => stop(), hasEnded: () => hasEnded }
}

/** Arguments of a decider for JSON, on a free port. */
export const json = (document: string, ...more: string[]) => [
  ...['--document', fileOf(document), '--dialect', 'json', '--listen', '127.0.0.1:0'],
  ...more,
]

/** Arguments of a decider for a gateway, on a free port: the gateway is this machine. */
export const gateway = (dialect: string, document: string, ...more: string[]) => [
  ...['--document', fileOf(document), '--dialect', dialect, '--listen', '127.0.0.1:0', '--trust-proxy', 'loopback'],
  ...more,
]

export interface DeciderResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: of any form
  readonly json: any
}

/** Sends one request over its own connection. Headers are pairs, so names can repeat. */
export function ask(
  { port }: Pick<Decider, 'port'>,
  {
    method = 'GET',
    path = '/v1/decide',
    host = `127.0.0.1:${port}`,
    headers = [],
    body,
  }: {
    method?: string
    path?: string
    host?: string
    headers?: readonly (readonly [string, string])[]
    body?: string | Uint8Array
  },
): Promise<DeciderResponse> {
  return new Promise((resolve, reject) => {
    const flat = [['Host', host], ...headers].flat()
    const sent = httpRequest({ port, host: '127.0.0.1', method, path, headers: flat, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          get json() {
            return JSON.parse(text)
          },
        }),
      )
    })
    sent.once('error', reject)
    sent.end(body)
  })
}

/** Sends one decision request to a decider for JSON. */
export function decide(
  decider: Pick<Decider, 'port'>,
  request: unknown,
  headers: [string, string][] = [],
): Promise<DeciderResponse> {
  const body = typeof request === 'string' ? request : JSON.stringify(request)
  const length: [string, string] = ['Content-Length', String(Buffer.byteLength(body))]
  return ask(decider, { method: 'POST', headers: [['Content-Type', 'application/json'], length, ...headers], body })
}

/** Sends these bytes, and resolves to everything received until the decider closes the connection. */
export function raw({ port }: Pick<Decider, 'port'>, ...parts: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => {
      for (const part of parts) socket.write(part, 'latin1')
    })
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk
    })
    // A connection that is reset has been closed, too.
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' ? resolve(text) : reject(error)))
    socket.once('close', () => resolve(text))
  })
}
