import { describe } from 'vitest'
import { acceptTests } from './responders/accept.js'
import { starting } from './responders/apps.js'
import { degradeTests } from './responders/degrade.js'
import { delayTests } from './responders/delay.js'
import { enforceSaltTests } from './responders/enforce-salt.js'
import { keyTests } from './responders/keys.js'
import { listenerTests } from './responders/listeners.js'
import { limitTests } from './responders/of-limits.js'
import { functionTests } from './responders/own-function.js'
import { queueTests } from './responders/queue.js'
import { reportModeTests } from './responders/report-mode.js'
import { shadowTests } from './responders/shadow.js'
import { tarpitTests } from './responders/tarpit.js'
import { throttleTests } from './responders/throttle.js'
import type { HandlerAppFactory } from './support/handler-apps.js'

/** The behaviour of every responder, on sockets, to the byte. */
export function respondersContract(name: string, factory: HandlerAppFactory): void {
  // Concurrent, as most tests wait most of the time.
  describe.concurrent(name, () => {
    const start = starting(factory)
    shadowTests(start)
    delayTests(start)
    queueTests(start)
    throttleTests(start)
    degradeTests(start)
    tarpitTests(start)
    functionTests(start)
    limitTests(start)
    reportModeTests(start)
    enforceSaltTests(start)
    acceptTests(start)
    listenerTests(start, name)
    keyTests(start)
  })
}
