// Preloaded into a worker: shifts its wall and monotonic clocks by CLOCK_SHIFT_MS.
const shiftMs = Number(process.env.CLOCK_SHIFT_MS ?? 0)

const { now } = Date
globalThis.Date = new Proxy(Date, {
  construct: (RealDate, args, target) =>
    Reflect.construct(RealDate, args.length === 0 ? [now() + shiftMs] : args, target),
  get: (RealDate, property) => (property === 'now' ? () => now() + shiftMs : Reflect.get(RealDate, property)),
})

Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + shiftMs })
