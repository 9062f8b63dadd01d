import type { Environment } from '../../program/environment.js'
import { quoted } from '../../program/options.js'
import { UsageError } from '../../program/usage-error.js'

/**
 * The servers to watch: those that arguments name, else those in METRICS_URL.
 *
 * @throws UsageError which repeats no URL of the environment: it may hold a password
 */
export function urlsOf(operands: readonly string[], env: Environment['env']): URL[] {
  const texts = operands.length > 0 ? operands : (env.METRICS_URL ?? '').split(/\s+/).filter((text) => text !== '')
  if (texts.length === 0) {
    throw new UsageError('no server is named: sluice top http://localhost:3000/metrics, or set METRICS_URL')
  }
  return texts.map((text) => urlOf(text, operands.length > 0))
}

function urlOf(text: string, isArgument: boolean): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    const got = isArgument ? `, got ${quoted(text)}` : ''
    throw new UsageError(
      `${isArgument ? 'URL' : 'METRICS_URL'}: expected one such as http://localhost:3000/metrics${got}`,
    )
  }
  if (isArgument && url.password !== '') {
    throw new UsageError('URL: a password in an argument shows in process lists: put the URL into METRICS_URL')
  }
  return url
}
