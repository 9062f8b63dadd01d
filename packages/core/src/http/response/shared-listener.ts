import { SharedListeners } from '../../util/shared-listeners.js'

/** The emitter of the end of a response: the response itself, or its stream over HTTP/2. */
export interface EndEmitter {
  on(event: EndEvent, listener: () => void): unknown
  removeListener(event: EndEvent, listener: () => void): unknown
}

type EndEvent = 'finish' | 'close'

const listenersOf = (event: EndEvent) =>
  new SharedListeners<EndEmitter>(
    (emitter, dispatch) => emitter.on(event, dispatch),
    (emitter, dispatch) => emitter.removeListener(event, dispatch),
  )
const shared = { finish: listenersOf('finish'), close: listenersOf('close') }

/** Listens for the end of a response until the returned function is called. Every limiter of a request needs several such listeners. */
export function listenTo(emitter: EndEmitter, event: EndEvent, listener: () => void): () => void {
  return shared[event].listen(emitter, listener)
}
