import { bytes, counted } from '@sluice/core/internal'
import { infoCheck } from '../check.js'
import { ok, warning } from '../finding.js'

/** Sluice has a few dozen at most. More come from an application that generates scripts. */
const MANY = 500

/** Whether the scripts of the store stay in the script cache. */
export const scripts = infoCheck('scripts', (info) => {
  const cached = Number(info.number_of_cached_scripts ?? 0)
  const used = Number(info.used_memory_scripts ?? 0)
  const evicted = Number(info.evicted_scripts ?? 0)
  const data = { cached, bytes: used, evicted }
  const size = `${counted(cached, 'script')} cached, ${bytes(used)}`
  const advice = 'Find the application that puts values into the text of its scripts instead of into ARGV.'
  if (evicted > 0) {
    return [
      warning(
        `Redis evicted ${counted(evicted, 'script')} since it started: those of Sluice are then sent anew, which costs a round trip (${size}).`,
        advice,
        data,
      ),
    ]
  }
  if (cached > MANY) {
    return [
      warning(`The script cache holds far more than Sluice has, and grows until a restart: ${size}.`, advice, data),
    ]
  }
  return [ok(`The script cache is small: ${size}.`, data)]
})
