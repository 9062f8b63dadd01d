import { SluiceError } from './errors.js'

/** Faults of a request itself. */
export type Fault = 'missing key' | 'wrong key' | 'differing cookies' | 'no address' | 'unreadable path' | 'wrong cost'

/**
 * A fault of a request, not of the application: a limiter of requests responds to it. The message is for the operator.
 */
export class RequestFault extends SluiceError {
  readonly fault: Fault

  constructor(fault: Fault, message: string, options?: ErrorOptions) {
    super(fault === 'wrong cost' ? 'INVALID_COST' : 'INVALID_KEY', message, options)
    this.fault = fault
  }
}
