// Preloaded into a worker: its clocks, wall and monotonic, differ from the machine's by CLOCK_SHIFT_MS.
const shiftMs = Number(process.env.CLOCK_SHIFT_MS ?? 0)

const RealDate = Date
const realNow = Date.now
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [realNow() + shiftMs] : args))
  }

  static now() {
    return realNow() + shiftMs
  }
}

const { timeOrigin } = performance
Object.defineProperty(performance, 'timeOrigin', { value: timeOrigin + shiftMs })
