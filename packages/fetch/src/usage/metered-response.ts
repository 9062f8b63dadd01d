import type { BodyMeter } from './costs.js'

/** A response whose body a meter sees as it passes: each chunk when its reader asks for it. */
export function metered(response: Response, meter: BodyMeter | undefined): Response {
  const { body } = response
  // Other clients than fetch have bodies of other kinds.
  if (!meter || !(body instanceof ReadableStream) || response.bodyUsed) return response
  return withBody(response, streamThrough(body, meter))
}

/** A constructor cannot set where a response is from. */
function withBody(original: Response, body: ReadableStream | null): Response {
  const response = new Response(body, original)
  const { url, redirected, type } = original
  const clone = () => withBody(original, Response.prototype.clone.call(response).body)
  for (const [name, value] of Object.entries({ url, redirected, type, clone })) {
    Object.defineProperty(response, name, { value, configurable: true })
  }
  return response
}

function streamThrough(body: ReadableStream<Uint8Array>, meter: BodyMeter): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        let read = await reader.read()
        // A stream of bytes takes no empty chunk.
        while (read.value?.byteLength === 0) read = await reader.read()
        if (read.value) {
          meter.add(read.value)
          // It takes the memory of its chunks, which may be part of another's.
          controller.enqueue(new Uint8Array(read.value))
          return
        }
        meter.end(true)
        controller.close()
        controller.byobRequest?.respond(0)
      } catch (error) {
        meter.end(false)
        throw error
      }
    },
    cancel(reason) {
      meter.end(false)
      return reader.cancel(reason)
    },
  })
}
