import { SluiceError } from './errors.js'

/** What can be wrong with a request itself. */
export type Fault = 'missing key' | 'wrong key' | 'differing cookies' | 'no address' | 'unreadable path' | 'wrong cost'

/**
 * What a request lacks or gets wrong, as opposed to what the application does: for a limiter of requests to respond to. The
 * message is for the operator.
 */
export class RequestFault extends SluiceError {
  readonly fault: Fault

  constructor(fault: Fault, message: string, options?: ErrorOptions) {
    super(fault === 'wrong cost' ? 'INVALID_COST' : 'INVALID_KEY', message, options)
    this.fault = fault
  }
}
