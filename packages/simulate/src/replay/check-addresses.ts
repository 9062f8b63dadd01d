import { isIP } from 'node:net'
import { percent, quoted } from '@sluice/core/internal'
import { SimulationError } from '../simulation-error.js'

/** How many requests each client has. */
interface Clients {
  readonly size: number
  nameOf(row: number): string
  requestsOf(row: number): number
}

/** The share of requests that may lack the address of their client. */
const FEW = 0.01

/**
 * Checks that the clients of a log are addresses, where a policy counts them by address. Whatever else they are would be one
 * client, or none.
 *
 * @param policy that counts by address. Undefined if none does
 * @param field where the address should be
 * @throws SimulationError which names the field
 */
export function checkAddresses(policy: string | undefined, addresses: Clients, field: string | undefined): void {
  if (policy === undefined) return
  let [total, without] = [0, 0]
  let example: string | undefined
  for (let row = 0; row < addresses.size; row++) {
    const requests = addresses.requestsOf(row)
    const name = addresses.nameOf(row)
    total += requests
    if (requests === 0 || isIP(name.split('/', 1)[0] as string) !== 0) continue
    without += requests
    example ??= name
  }
  if (without <= FEW * total) return
  throw new SimulationError(
    `policy ${quoted(policy)} counts by the client's address, but ${percent(without / total)} of the requests have none` +
      `${field === undefined ? '' : ` in the field ${field}`}, such as ${quoted(example as string)}: ` +
      '--client FIELD names another field, --format the format, and --lenient accepts that',
  )
}
