import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { adviceHere, find } from '../../scripts/lib/system-program.js'
import { PROGRAMS } from '../../scripts/programs.js'
import { accepts } from './accepts.js'
import { startLeashed } from './leash.js'
import { ownDirectory, unprivileged } from './unprivileged.js'
import { until } from './until.js'

export interface Nginx {
  stop(): Promise<void>
}

/**
 * Starts a real nginx with these settings: one process, in the foreground, without privileges, with a
 * folder of its own. Resolves when it accepts connections on `port`. Fails, never skips, without nginx.
 */
export async function startNginx(settings: string, port: number): Promise<Nginx> {
  const binary = find(PROGRAMS.nginx)
  if (binary === undefined) throw new Error(adviceHere([PROGRAMS.nginx]))
  const dir = ownDirectory('sluice-nginx-')
  const config = join(dir, 'nginx.conf')
  writeFileSync(config, settings)

  // Workers of a killed nginx would live on, so there are none.
  const [program, args] = unprivileged(binary, '-p', dir, '-e', 'stderr', '-c', config, '-g', 'master_process off;')
  const server = await startLeashed(program, args, dir)
  try {
    await until('nginx accepts connections', () => accepts(port))
  } catch (error) {
    await server.end()
    throw new Error(`nginx did not start: ${server.errorText()}`, { cause: error })
  }
  return { stop: () => server.end() }
}

export interface Answer {
  readonly status: number
  readonly head: string
  readonly body: string
}

/**
 * A GET by a client at `address`, to a port where nginx speaks the PROXY protocol: as a load balancer in front of it
 * would. The only way to send from another address without another machine.
 */
export async function getFrom(address: string, port: number, path: string, headers: string[] = []): Promise<Answer> {
  const socket = connect(port, '127.0.0.1')
  const request = [`GET ${path} HTTP/1.1`, 'Host: example.test', 'Connection: close', ...headers, '', '']
  socket.write(`PROXY TCP4 ${address} 127.0.0.1 40000 ${port}\r\n${request.join('\r\n')}`)
  const answer = await text(socket)
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head, body }
}
