import { EventEmitter } from 'node:events'
import { setImmediate } from 'node:timers/promises'

/** A response without a framework, and a function that ends it. */
export function responseToEnd() {
  const response = Object.assign(new EventEmitter(), { headersSent: false, statusCode: 200 })
  const end = async (statusCode: number) => {
    Object.assign(response, { headersSent: true, statusCode })
    response.emit('finish')
    await setImmediate()
  }
  return { response, end }
}
