import { Transform } from 'node:stream'
import type { Meter } from '../../verdict/meter.js'

/** The streams of a meter. */
export abstract class StreamMeter implements Meter {
  abstract readonly used: number
  abstract add(units: number): Promise<boolean>
  abstract end(): Promise<void>

  stream<Chunk>(count: (chunk: Chunk) => number) {
    const end = () => this.end()
    return new TransformStream<Chunk, Chunk>({
      transform: async (chunk, controller) => {
        const goesOn = await this.add(count(chunk))
        controller.enqueue(chunk)
        if (goesOn) return
        controller.terminate()
        await this.end()
      },
      flush: end,
    })
  }

  nodeStream(count: (chunk: never) => number): Transform {
    const meter = this
    let isOver = false
    return new Transform({
      objectMode: true,
      transform: async function (chunk, _encoding, done) {
        // Chunks that come after the end of the units.
        if (isOver) return done()
        try {
          isOver = !(await meter.add(count(chunk as never)))
          this.push(chunk)
          if (isOver) this.push(null)
          done()
        } catch (error) {
          done(error as Error)
        }
      },
      flush: (done) => void meter.end().then(() => done(), done),
      destroy: (error, done) => void meter.end().then(() => done(error), done),
    })
  }
}
