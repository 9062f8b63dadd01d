import type { KernelName } from '../../store/algorithms.js'
import { KIND_CALLS } from './scripts.generated.js'

const CALLS: Readonly<Record<KernelName, readonly (readonly [string, ...string[]])[]>> = KIND_CALLS

/**
 * The commands that decision scripts call besides TIME and EXISTS, each on a key that nothing else uses. They depend on
 * the kinds of cells and on whether decisions may ban.
 *
 * SET comes first: once a script has written, Redis does not refuse it for lack of memory. The key expires by itself if
 * DEL is refused; later commands create only keys that DEL removes. Files in lua/cells declare the further commands of
 * each kind.
 */
export function commandsNeeded(key: string, kinds: ReadonlySet<KernelName>, bans = false): string[][] {
  const commands = [
    ['SET', key, '', 'PX', '1'],
    ['DEL', key],
    ['GET', key],
    ['SETRANGE', key, '0', ''],
  ]
  if (bans) commands.push(['PTTL', key])
  for (const kind of kinds) for (const [name, ...words] of CALLS[kind]) commands.push([name, key, ...words])
  return commands
}
