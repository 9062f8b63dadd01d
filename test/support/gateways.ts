import { copyFileSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { adviceHere, find } from '../../scripts/lib/system-program.js'
import { PROGRAMS } from '../../scripts/programs.js'
import { accepts } from './accepts.js'
import { startLeashed } from './leash.js'
import { until } from './until.js'

export interface Gateway {
  stop(): Promise<void>
}

/**
 * Starts a real Caddy with this Caddyfile. Resolves when it accepts connections on `port`. Fails, never skips, without
 * Caddy.
 */
export function startCaddy(settings: string, port: number): Promise<Gateway> {
  return startGateway('caddy', PROGRAMS.caddy, port, (dir) => {
    writeFileSync(join(dir, 'Caddyfile'), settings)
    return ['run', '--config', join(dir, 'Caddyfile'), '--adapter', 'caddyfile']
  })
}

/** Starts a real HAProxy with these settings, and the files that they load from the folder of the example. */
export function startHaproxy(settings: string, port: number): Promise<Gateway> {
  return startGateway('haproxy', PROGRAMS.haproxy, port, (dir) => {
    writeFileSync(join(dir, 'haproxy.cfg'), settings)
    copyFileSync(
      fileURLToPath(new URL('../../examples/gateways/haproxy/sluice.lua', import.meta.url)),
      join(dir, 'sluice.lua'),
    )
    return ['-C', dir, '-f', join(dir, 'haproxy.cfg'), '-db']
  })
}

async function startGateway(
  name: string,
  wanted: typeof PROGRAMS.caddy,
  port: number,
  prepare: (dir: string) => string[],
): Promise<Gateway> {
  const binary = find(wanted)
  if (binary === undefined) throw new Error(adviceHere([wanted]))
  const dir = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  // Caddy stores files in the home of its user.
  const command = ['env', `HOME=${dir}`, `XDG_DATA_HOME=${dir}`, `XDG_CONFIG_HOME=${dir}`, binary, ...prepare(dir)]
  const server = await startLeashed(command[0] as string, command.slice(1), dir)
  try {
    await until(`${name} accepts connections`, () => accepts(port))
  } catch (error) {
    const errors = server.errorText()
    await server.end()
    throw new Error(`${name} did not start: ${errors}`, { cause: error })
  }
  return { stop: () => server.end() }
}
