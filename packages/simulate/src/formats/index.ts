import { hintAfter, quoted } from '@sluice/core/internal'
import { SimulationError } from '../simulation-error.js'
import { apacheFormat, isApacheFormat } from './apache-format.js'
import { AWS_ALB } from './aws-alb.js'
import { COMMON_FORMATS } from './common.js'
import { FASTIFY } from './fastify.js'
import type { LogFormat } from './format.js'
import { type JsonFields, jsonFormat } from './json-lines.js'
import { nginxFormat } from './nginx-format.js'
import { NGINX_PROXY_MANAGER } from './nginx-proxy-manager.js'
import { RECORDING } from './recording.js'
import { JSON_FORMATS } from './servers.js'
import { TEXT_FORMATS } from './text-formats.js'
import { W3C_FORMATS } from './w3c.js'

/** The forms of logs that are recognised, the most specific first. */
export const FORMATS: readonly LogFormat[] = [
  RECORDING,
  FASTIFY,
  ...JSON_FORMATS,
  ...W3C_FORMATS,
  AWS_ALB,
  ...TEXT_FORMATS,
  ...NGINX_PROXY_MANAGER,
  ...COMMON_FORMATS,
]

/**
 * The form that `--format` names: one of `FORMATS`, the text of nginx's `log_format` or of Apache's `LogFormat`, or where lines of JSON have their
 * fields, as `{"time": ".at", "ip": ".client"}`.
 *
 * @throws SimulationError
 */
export function formatOf(text: string): LogFormat {
  const known = FORMATS.find(({ name }) => name === text)
  if (known) return known
  if (text.includes('$')) return nginxFormat(text)
  if (text.trimStart().startsWith('{')) return jsonFormat('json', jsonFields(text))
  if (isApacheFormat(text)) return apacheFormat(text)
  const names = FORMATS.map(({ name }) => name)
  throw new SimulationError(
    `--format: expected ${names.join(', ')}, the text of nginx's log_format or of Apache's LogFormat, or a JSON object of fields, got ${quoted(text)}${hintAfter(text, names)}`,
  )
}

/** The field with the client's address of a recognised form, whose name may be followed by that of a prefix. */
export function clientFieldOf(form: string | undefined): string | undefined {
  return FORMATS.find(({ name }) => name === form?.split(' ', 1)[0])?.client
}

/** Names of `JsonFields` with a path. */
const PATHS = ['time', 'start', 'ip', 'method', 'target', 'status', 'bytes', 'user', 'agent', 'host', 'headers', 'mark']
const DURATIONS: Readonly<Record<string, number>> = {
  durationS: 1000,
  durationMs: 1,
  durationUs: 1e-3,
  durationNs: 1e-6,
}

function jsonFields(text: string): JsonFields {
  const fields: Record<string, unknown> = {}
  for (const [name, path] of Object.entries(parsed(text))) {
    if (typeof path !== 'string' || !path.startsWith('.')) {
      throw new SimulationError(
        `--format: ${quoted(name)}: expected a path such as ".request.ip", got ${quoted(JSON.stringify(path))}`,
      )
    }
    const unit = Object.hasOwn(DURATIONS, name) ? DURATIONS[name] : undefined
    if (unit !== undefined) Object.assign(fields, { duration: path, durationUnitMs: unit })
    else if (PATHS.includes(name)) fields[name] = path
    else
      throw new SimulationError(
        `--format: expected ${[...PATHS, ...Object.keys(DURATIONS)].join(', ')}, got ${quoted(name)}`,
      )
  }
  if (!fields.time && !fields.start)
    throw new SimulationError('--format: expected "time" (the end of a request) or "start"')
  return fields
}

function parsed(text: string): object {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new SimulationError(`--format: expected a JSON object (${(error as Error).message})`)
  }
}
