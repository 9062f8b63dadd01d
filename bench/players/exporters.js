// A limiter in memory, with an exporter or without.

import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { createLimiter, memoryStore } from '@sluice/core'
import { sluiceMetrics as forOpenTelemetry } from '@sluice/otel'
import { sluiceMetrics as forPrometheus } from '@sluice/prometheus'
import { register } from 'prom-client'
import { answer } from '../lib/child.js'

const KEYS = 2000
/** At 10,000 decisions a second that is a scrape every 15 s, as Prometheus does by default. */
const SCRAPE_EVERY = 150_000

class Reader extends MetricReader {
  async onShutdown() {}
  async onForceFlush() {}
}

/** @type {Record<string, () => () => Promise<unknown>>} what starts an exporter, and what has it read everything */
const EXPORTERS = {
  none: () => async () => {},
  prometheus() {
    forPrometheus()
    return () => register.metrics()
  },
  otel() {
    const reader = new Reader()
    forOpenTelemetry({ meterProvider: new MeterProvider({ readers: [reader] }) })
    return () => reader.collect()
  },
}

answer({
  /** CPU time per decision, in µs, with its share of scrapes. @param {{ exporter: string, count: number }} params */
  async cost({ exporter, count }) {
    const scrape = /** @type {() => () => Promise<unknown>} */ (EXPORTERS[exporter])()
    const limiter = createLimiter({ name: 'bench', store: memoryStore(), limit: 100, window: '1m' })
    /** @param {number} times */
    const decide = async (times) => {
      for (let i = 1; i <= times; i++) {
        await limiter.consume(`user:${(i * 7919) % KEYS}`)
        if (i % SCRAPE_EVERY === 0) await scrape()
      }
    }
    // V8 compiles for the first half a million decisions.
    await decide(600_000)
    const before = process.cpuUsage()
    await decide(count)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / count
  },
})
